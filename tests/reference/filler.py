"""Formula weights: every parameter is a hash of its tensor number and its flat index, so that two
implementations can be compared without exchanging a file."""
import math

import numpy as np
import torch

IMAGE, FEATURE, DENOISING = 4000, 1000, 2000  # tensor numbers of the inputs
HEAD, BACKBONE = 0, 5000  # first numbers of the parameters
LAYERS = 6


def u(number, shape, dtype=torch.float64):
    """Values in [-1, 1) of tensor `number`, row-major."""
    count = math.prod(shape)
    offset = np.uint32((number * 0x9E3779B9) % 2**32)
    x = np.arange(count, dtype=np.uint32) + offset
    x ^= x >> np.uint32(16)
    x *= np.uint32(0x85EBCA6B)
    x ^= x >> np.uint32(13)
    x *= np.uint32(0xC2B2AE35)
    x ^= x >> np.uint32(16)
    values = torch.from_numpy(x.astype(np.float64)).mul_(2.0**-31).sub_(1.0)
    return values.reshape(shape).to(dtype)


def assign(parameter, values):
    with torch.no_grad():
        parameter.copy_(values.reshape(parameter.shape))


def fill_linear(module, number):
    weight = module.weight
    assign(weight, u(number, weight.shape) * math.sqrt(3 / weight[0].numel()))
    assign(module.bias, 0.02 * u(number + 1, module.bias.shape))
    return number + 2


def fill_layer_norm(module, number):
    assign(module.weight, 1 + 0.02 * u(number, module.weight.shape))
    assign(module.bias, 0.02 * u(number + 1, module.bias.shape))
    return number + 2


def fill_attention(attention, number):
    weight, bias = attention.in_proj_weight, attention.in_proj_bias
    assign(weight, u(number, weight.shape) * math.sqrt(3 / weight.shape[1]))
    assign(bias, 0.02 * u(number + 1, bias.shape))
    return fill_linear(attention.out_proj, number + 2)


def fill_decoder_layer(layer, number):
    for attention in layer.attentions:
        number = fill_attention(attention.attn, number)
    for linear in layer.ffns[0].linears():
        number = fill_linear(linear, number)
    for norm in layer.norms:
        number = fill_layer_norm(norm, number)
    return number


def fill_head(head):
    """A module that a configuration leaves out leaves its numbers unused."""
    fill_linear(head.input_proj, 0)
    fill_linear(head.position_encoder[0], 2)
    fill_linear(head.position_encoder[2], 4)
    fill_linear(head.fpe.conv_reduce, 6)
    fill_linear(head.fpe.conv_expand, 8)
    if head.adapt_pos3d is not None:
        fill_linear(head.adapt_pos3d[0], 10)
        fill_linear(head.adapt_pos3d[2], 12)
    assign(head.reference_points.weight, 0.5 + 0.45 * u(14, head.reference_points.weight.shape))
    fill_linear(head.query_embedding[0], 15)
    fill_linear(head.query_embedding[2], 17)
    decoder = head.transformer.decoder
    for index, layer in enumerate(decoder.layers):
        fill_decoder_layer(layer, 19 + 18 * index)
    fill_layer_norm(decoder.post_norm, 127)
    for index, branch in enumerate(head.cls_branches):
        number = 129 + 10 * index
        for module in branch:
            if isinstance(module, torch.nn.Linear):
                number = fill_linear(module, number)
            elif isinstance(module, torch.nn.LayerNorm):
                number = fill_layer_norm(module, number)
    for index, branch in enumerate(head.reg_branches):
        number = 189 + 24 * index
        for linear in branch.linears():
            number = fill_linear(linear, number)


def fill_conv(conv, number):
    weight = conv.weight
    assign(weight, u(number, weight.shape) * math.sqrt(6 / weight[0].numel()))
    if conv.bias is None:
        return number + 1
    assign(conv.bias, 0.02 * u(number + 1, conv.bias.shape))
    return number + 2


def fill_batch_norm(norm, number, scale=1.0):
    shape = norm.weight.shape
    assign(norm.weight, scale * (1 + 0.1 * u(number, shape)))
    assign(norm.bias, 0.1 * u(number + 1, shape))
    assign(norm.running_mean, 0.1 * u(number + 2, shape))
    assign(norm.running_var, 1 + 0.1 * u(number + 3, shape))
    return number + 4


def fill_backbone_and_neck(backbone, neck, bn3_scale=1.0):
    """Numbers in execution order. Returns the last number of the backbone."""
    number = BACKBONE
    for module, is_bn3 in backbone.in_execution_order():
        if isinstance(module, torch.nn.Conv2d):
            number = fill_conv(module, number)
        else:
            number = fill_batch_norm(module, number, bn3_scale if is_bn3 else 1.0)
    last = number - 1
    if neck is not None:
        for conv in neck.in_execution_order():
            number = fill_conv(conv, number)
    return last


def fill_model(model, bn3_scale=1.0):
    fill_head(model.pts_bbox_head)
    return fill_backbone_and_neck(model.img_backbone, model.img_neck, bn3_scale)
