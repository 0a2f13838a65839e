"""ResNet and VoVNetV2-99 with frozen batch-norm statistics. Parameter names are those of the
released checkpoints, slashes included."""
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint


class FrozenBatchNorm(nn.Module):
    """Batch norm that always uses its stored statistics."""

    def __init__(self, channels, trainable):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(channels), requires_grad=trainable)
        self.bias = nn.Parameter(torch.zeros(channels), requires_grad=trainable)
        self.register_buffer("running_mean", torch.zeros(channels))
        self.register_buffer("running_var", torch.ones(channels))
        self.eps = 1e-5

    def forward(self, x):
        statistics = self.running_mean, self.running_var
        return F.batch_norm(x, *statistics, self.weight, self.bias, False, 0.0, self.eps)

    def scale_and_shift(self):
        scale = self.weight * torch.rsqrt(self.running_var + self.eps)
        return scale, self.bias - self.running_mean * scale


def conv_norm(x, conv, norm, fold=False):
    """Folding multiplies the norm into the convolution: the same function, one pass less."""
    if not fold:
        return norm(conv(x))
    scale, shift = norm.scale_and_shift()
    weight = conv.weight * scale[:, None, None, None]
    return F.conv2d(x, weight, shift, conv.stride, conv.padding)


def convolution(inputs, outputs, kernel, stride=1):
    return nn.Conv2d(inputs, outputs, kernel, stride, padding=kernel // 2, bias=False)


class Backbone(nn.Module):
    fold = False  # see conv_norm
    recompute = False  # activation checkpointing of every block

    def run(self, block, x):
        if self.recompute and x.requires_grad and torch.is_grad_enabled():
            return checkpoint(block, x, self.fold, use_reentrant=False)
        return block(x, self.fold)


class BasicBlock(nn.Module):
    expansion = 1

    def __init__(self, inputs, width, stride, style, train_norm):
        super().__init__()
        self.conv1 = convolution(inputs, width, 3, stride)
        self.bn1 = FrozenBatchNorm(width, train_norm)
        self.conv2 = convolution(width, width, 3)
        self.bn2 = FrozenBatchNorm(width, train_norm)
        self.downsample = shortcut(inputs, width, stride, train_norm)

    def forward(self, x, fold):
        y = F.relu(conv_norm(x, self.conv1, self.bn1, fold), inplace=True)
        y = conv_norm(y, self.conv2, self.bn2, fold)
        if self.downsample is not None:
            x = conv_norm(x, *self.downsample, fold)
        return F.relu(y.add_(x), inplace=True)

    def in_execution_order(self):
        yield from ((self.conv1, False), (self.bn1, False), (self.conv2, False), (self.bn2, False))
        yield from ((module, False) for module in self.downsample or ())


class Bottleneck(nn.Module):
    expansion = 4

    def __init__(self, inputs, width, stride, style, train_norm):
        super().__init__()
        first, second = (1, stride) if style == "pytorch" else (stride, 1)
        self.conv1 = convolution(inputs, width, 1, first)
        self.bn1 = FrozenBatchNorm(width, train_norm)
        self.conv2 = convolution(width, width, 3, second)
        self.bn2 = FrozenBatchNorm(width, train_norm)
        self.conv3 = convolution(width, 4 * width, 1)
        self.bn3 = FrozenBatchNorm(4 * width, train_norm)
        self.downsample = shortcut(inputs, 4 * width, stride, train_norm)

    def forward(self, x, fold):
        y = F.relu(conv_norm(x, self.conv1, self.bn1, fold), inplace=True)
        y = F.relu(conv_norm(y, self.conv2, self.bn2, fold), inplace=True)
        y = conv_norm(y, self.conv3, self.bn3, fold)
        if self.downsample is not None:
            x = conv_norm(x, *self.downsample, fold)
        return F.relu(y.add_(x), inplace=True)

    def in_execution_order(self):
        for module in (self.conv1, self.bn1, self.conv2, self.bn2, self.conv3):
            yield module, False
        yield self.bn3, True
        yield from ((module, False) for module in self.downsample or ())


def shortcut(inputs, outputs, stride, train_norm):
    if inputs == outputs and stride == 1:
        return None
    norm = FrozenBatchNorm(outputs, train_norm)
    return nn.Sequential(convolution(inputs, outputs, 1, stride), norm)


class ResNet(Backbone):
    DEPTHS = {
        18: (BasicBlock, (2, 2, 2, 2)),
        50: (Bottleneck, (3, 4, 6, 3)),
        101: (Bottleneck, (3, 4, 23, 3)),
    }
    stages = ("stem", "layer1", "layer2", "layer3", "layer4")

    def __init__(self, depth, style="pytorch", base_width=64, train_norm=False):
        super().__init__()
        block, counts = self.DEPTHS[depth]
        self.conv1 = convolution(3, base_width, 7, 2)
        self.bn1 = FrozenBatchNorm(base_width, train_norm)
        inputs = base_width
        for index, count in enumerate(counts):
            width, blocks = base_width * 2**index, []
            for position in range(count):
                stride = 2 if index > 0 and position == 0 else 1
                blocks.append(block(inputs, width, stride, style, train_norm))
                inputs = width * block.expansion
            self.add_module(f"layer{index + 1}", nn.Sequential(*blocks))
        self.channels = (inputs // 2, inputs)

    def forward(self, images):
        """The outputs of the stem and the four stages."""
        x = F.relu(conv_norm(images, self.conv1, self.bn1, self.fold), inplace=True)
        outputs = [F.max_pool2d(x, 3, 2, 1)]
        for name in self.stages[1:]:
            x = outputs[-1]
            for block in getattr(self, name):
                x = self.run(block, x)
            outputs.append(x)
        return outputs

    def in_execution_order(self):
        yield from ((self.conv1, False), (self.bn1, False))
        for name in self.stages[1:]:
            for block in getattr(self, name):
                yield from block.in_execution_order()


class NamedConvNorm(nn.Module):
    """3x3 or 1x1 convolution, norm, ReLU under the names `<name>/conv` and `<name>/norm`."""

    def __init__(self, layers, train_norm):
        super().__init__()
        for name, inputs, outputs, kernel, stride in layers:
            self.add_module(f"{name}/conv", convolution(inputs, outputs, kernel, stride))
            self.add_module(f"{name}/norm", FrozenBatchNorm(outputs, train_norm))

    def forward(self, x, fold):
        modules = list(self.children())
        for conv, norm in zip(modules[::2], modules[1::2]):
            x = F.relu(conv_norm(x, conv, norm, fold), inplace=True)
        return x


class EffectiveSqueezeExcitation(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.fc = nn.Conv2d(channels, channels, 1)

    def forward(self, x):
        gate = self.fc(x.mean((2, 3), keepdim=True))
        return x * (F.relu6(gate + 3) / 6)


class OneShotAggregation(nn.Module):
    def __init__(self, name, inputs, width, outputs, identity, train_norm):
        super().__init__()
        self.identity = identity
        self.layers = nn.ModuleList(
            NamedConvNorm([(f"{name}_{i}", inputs if i == 0 else width, width, 3, 1)], train_norm)
            for i in range(5)
        )
        concat = f"{name}_concat", inputs + 5 * width, outputs, 1, 1
        self.concat = NamedConvNorm([concat], train_norm)
        self.ese = EffectiveSqueezeExcitation(outputs)

    def forward(self, x, fold):
        parts = [x]
        for layer in self.layers:
            parts.append(layer(parts[-1], fold))
        y = self.ese(self.concat(torch.cat(parts, 1), fold))
        return y + x if self.identity else y


class VoVNet99(Backbone):
    stages = ("stem", "stage2", "stage3", "stage4", "stage5")
    LAYOUT = ((1, 128, 256), (3, 160, 512), (9, 192, 768), (3, 224, 1024))
    channels = (768, 1024)

    def __init__(self, train_norm=True):
        super().__init__()
        stem = ("stem_1", 3, 64, 3, 2), ("stem_2", 64, 64, 3, 1), ("stem_3", 64, 128, 3, 2)
        self.stem = NamedConvNorm(stem, train_norm)
        inputs = 128
        for stage, (count, width, outputs) in zip(range(2, 6), self.LAYOUT):
            blocks = nn.Sequential()
            for b in range(1, count + 1):
                name = f"OSA{stage}_{b}"
                block = OneShotAggregation(name, inputs, width, outputs, b > 1, train_norm)
                blocks.add_module(name, block)
                inputs = outputs
            self.add_module(f"stage{stage}", blocks)

    def forward(self, images):
        outputs = [self.stem(images, self.fold)]
        for name in self.stages[1:]:
            x = outputs[-1]
            if name != "stage2":
                x = F.max_pool2d(x, 3, 2, ceil_mode=True)
            for block in getattr(self, name):
                x = self.run(block, x)
            outputs.append(x)
        return outputs

    def in_execution_order(self):
        for module in self.modules():  # construction order is execution order
            if isinstance(module, (nn.Conv2d, FrozenBatchNorm)):
                yield module, False


def build_backbone(config):
    if config.backbone == "vovnet99":
        return VoVNet99(config.trainable_norm)
    depth = int(config.backbone.removeprefix("resnet"))
    return ResNet(depth, config.style, config.base_width, config.trainable_norm)
