"""The detection head: 3D position encoder with feature-guided gate, query generator, decoder, and
one pair of branches per decoder layer."""
import copy
import math

import torch
from torch import nn
from torch.nn import functional as F

import geometry
from transformer import Transformer

TASK_SIZES = (2, 1, 3, 2, 2)


def mlp(inputs, hidden, outputs):
    first, last = nn.Linear(inputs, hidden), nn.Linear(hidden, outputs)
    return nn.Sequential(first, nn.ReLU(inplace=True), last)


class FeatureGuidedGate(nn.Module):
    def __init__(self, embed):
        super().__init__()
        self.conv_reduce = nn.Linear(embed, embed)
        self.conv_expand = nn.Linear(embed, embed)

    def forward(self, x):
        return self.conv_expand(F.relu(self.conv_reduce(x), inplace=True)).sigmoid()


class BoxBranch(nn.Module):
    def __init__(self, embed):
        super().__init__()
        trunk = []
        for _ in range(2):
            trunk += [nn.Linear(embed, embed), nn.ReLU(inplace=True), nn.Identity()]
        self.reg_branch = nn.Sequential(*trunk)
        self.task_heads = nn.ModuleList(mlp(embed, embed, size) for size in TASK_SIZES)

    def forward(self, x):
        x = self.reg_branch(x)
        return torch.cat([head(x) for head in self.task_heads], -1)

    def linears(self):
        return (module for module in self.modules() if isinstance(module, nn.Linear))


def class_branch(embed, classes):
    layers = []
    for _ in range(2):
        layers += [nn.Linear(embed, embed), nn.LayerNorm(embed), nn.ReLU(inplace=True)]
    return nn.Sequential(*layers, nn.Linear(embed, classes))


class PETRHead(nn.Module):
    def __init__(self, config, channels):
        super().__init__()
        embed = config.embed
        self.config = config
        self.input_proj = nn.Linear(channels, embed)
        self.position_encoder = mlp(3 * config.depth_bins, config.hidden, embed)
        self.fpe = FeatureGuidedGate(embed)
        sine = 3 * config.axis_channels
        self.adapt_pos3d = mlp(sine, config.hidden, embed) if config.multiview_sine else None
        self.reference_points = nn.Embedding(config.queries, 3)
        self.query_embedding = mlp(sine, embed, embed)
        self.code_weights = nn.Parameter(torch.tensor(config.code_weights), requires_grad=False)
        self.transformer = Transformer(config)
        self.cls_branches = nn.ModuleList(
            class_branch(embed, config.classes) for _ in range(config.layers)
        )
        self.reg_branches = nn.ModuleList(BoxBranch(embed) for _ in range(config.layers))
        self.constants = {}

    def initialise(self):
        self.transformer.initialise()
        nn.init.uniform_(self.reference_points.weight)
        nn.init.constant_(self.cls_branches[0][-1].bias, -math.log(99))
        for branches in (self.cls_branches, self.reg_branches):
            state = copy.deepcopy(branches[0].state_dict())
            for branch in branches[1:]:
                branch.load_state_dict(state)

    def constant(self, key, like, make):
        key = *key, like.device, like.dtype
        if key not in self.constants:
            self.constants[key] = make().to(like.device, like.dtype)
        return self.constants[key]

    def forward(self, feature, img2lidar, delta_t, padded, dn=None, record=None, on_layer=None):
        """feature (B N, C, h, w). Returns logits and boxes, each (layers, B, queries, 10); the
        denoising queries come first. on_layer(l, logits, boxes) runs after each layer's branches.
        """
        record = record or (lambda name, tensor: None)
        batch, views = img2lidar.shape[:2]
        h, w = feature.shape[2:]
        tokens = feature.flatten(2).transpose(1, 2).reshape(batch, views * h * w, -1)
        memory = self.input_proj(tokens)
        record("projection", memory)
        key = memory + self.key_position(memory, img2lidar, (h, w), padded, record)

        anchors = self.reference_points.weight.expand(batch, -1, -1)
        mask, first = None, 0
        if dn is not None:
            anchors = torch.cat([dn.anchors, anchors], 1)
            mask, first = dn.may_attend, dn.anchors.shape[1]
        position = self.query_embedding(geometry.anchor_sine(anchors, self.config.axis_channels))
        record("query", position[0, first:])

        anchors_logit = geometry.inverse_sigmoid(anchors)
        logits, boxes = [], []
        outputs = self.transformer.decoder(position, memory, key, mask)
        for l, output in enumerate(outputs):
            if not self.config.denoising:
                output = output.nan_to_num()
            raw = self.reg_branches[l](output)
            logits.append(self.cls_branches[l](output))
            boxes.append(geometry.metres(raw, anchors_logit, delta_t))
            named = {"decoder": output, "raw": raw, "class": logits[l], "box": boxes[l]}
            for name, tensor in named.items():
                record(f"{name}.{l}", tensor[:, first:])
            if on_layer is not None:
                on_layer(l, logits[l][:, first:], boxes[l][:, first:])
        return torch.stack(logits), torch.stack(boxes)

    def key_position(self, memory, img2lidar, size, padded, record):
        views = img2lidar.shape[1]
        make_points = lambda: geometry.frustum(self.config, size, padded)
        points = self.constant(("frustum", size, tuple(padded)), img2lidar, make_points)
        limits = self.constant(("limits",), img2lidar, geometry.position_range)
        coordinates = geometry.normalised_coordinates(points, img2lidar, limits)
        record("coords", coordinates)
        log_odds = geometry.inverse_sigmoid(coordinates).reshape(*memory.shape[:2], -1)
        record("log_odds", log_odds)
        pe3d = self.position_encoder(log_odds)
        record("pe3d", pe3d)
        gate = self.fpe(memory)
        record("gate", gate)
        position = gate * pe3d
        if self.adapt_pos3d is not None:
            channels = self.config.axis_channels
            make_sine = lambda: geometry.multiview_sine(views, *size, channels)
            sine = self.constant(("sine", views, size), memory, make_sine)
            record("sine", sine)
            position = position + self.adapt_pos3d(sine)
        record("pos", position)
        return position
