"""CPFPN: a two-level feature pyramid whose second output has no convolution of its own."""
from torch import nn
from torch.nn import functional as F


class ConvModule(nn.Module):
    def __init__(self, inputs, outputs, kernel):
        super().__init__()
        self.conv = nn.Conv2d(inputs, outputs, kernel, padding=kernel // 2)

    def forward(self, x):
        return self.conv(x)


class CPFPN(nn.Module):
    def __init__(self, channels, outputs=256):
        super().__init__()
        self.lateral_convs = nn.ModuleList(ConvModule(c, outputs, 1) for c in channels)
        self.fpn_convs = nn.ModuleList([ConvModule(outputs, outputs, 3)])

    def forward(self, c4, c5):
        p5 = self.lateral_convs[1](c5)
        p4 = self.lateral_convs[0](c4) + F.interpolate(p5, c4.shape[2:], mode="nearest")
        return self.fpn_convs[0](p4), p5

    def in_execution_order(self):
        yield from (self.lateral_convs[0].conv, self.lateral_convs[1].conv, self.fpn_convs[0].conv)

    def initialise(self):
        for conv in self.in_execution_order():
            nn.init.xavier_uniform_(conv.weight)
            nn.init.zeros_(conv.bias)
