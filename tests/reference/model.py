"""PETRv2: backbone and neck (optionally in mixed precision) and the head in full precision."""
import contextlib

import torch
from torch import nn

from backbones import build_backbone
from head import PETRHead
from neck import CPFPN


class PETRv2(nn.Module):
    amp_dtype = None  # of backbone and neck; torch.bfloat16 or torch.float16

    def __init__(self, config):
        super().__init__()
        self.config = config
        self.img_backbone = build_backbone(config)
        channels = self.img_backbone.channels
        self.img_neck = CPFPN(channels, config.embed) if config.feature == "p4" else None
        inputs = channels[-1] if self.img_neck is None else config.embed
        self.pts_bbox_head = PETRHead(config, inputs)

    def initialise(self):
        """Random start, to be called on materialised parameters of the default initialisation."""
        if self.img_neck is not None:
            self.img_neck.initialise()
        self.pts_bbox_head.initialise()

    def mixed_precision(self, device):
        if self.amp_dtype is None:
            return contextlib.nullcontext()
        return torch.autocast(device.type, dtype=self.amp_dtype)

    def image_feature(self, images, record=None):
        with self.mixed_precision(images.device):
            outputs = self.img_backbone(images)
            if record is not None:
                for name, tensor in zip(self.img_backbone.stages, outputs):
                    record(name, tensor)
            if self.img_neck is None:
                return outputs[-1].to(images.dtype)
            p4, p5 = self.img_neck(*outputs[-2:])
            if record is not None:
                record("P4", p4)
                record("P5", p5)
        return p4.to(images.dtype)

    def forward(self, images, img2lidar, delta_t, dn=None, record=None, on_layer=None):
        """images (B, N, 3, H, W), normalised and padded; img2lidar (B, N, 4, 4)."""
        feature = self.image_feature(images.flatten(0, 1), record)
        padded = images.shape[-2:]
        return self.pts_bbox_head(feature, img2lidar, delta_t, padded, dn, record, on_layer)


def build(config, device="cpu", dtype=torch.float32):
    """A model of unset parameters, for filler.fill_model or a checkpoint."""
    with torch.device("meta"):
        model = PETRv2(config)
    model = model.to(dtype).to_empty(device=device)
    with torch.no_grad():
        head = model.pts_bbox_head
        head.code_weights.copy_(torch.tensor(config.code_weights))
    return model


def parameter_count(config):
    with torch.device("meta"):
        return sum(p.numel() for p in PETRv2(config).parameters())
