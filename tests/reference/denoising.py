"""Denoising queries: noised copies of the ground truth that share the decoder in training."""
import dataclasses
import functools

import torch

from config import POINT_CLOUD_RANGE

BACKGROUND = 10


@dataclasses.dataclass
class Denoising:
    anchors: torch.Tensor  # (B, pad, 3), normalised
    may_attend: torch.Tensor  # (pad + Q, pad + Q)
    sample: torch.Tensor  # (M,) which sample a copy belongs to
    slot: torch.Tensor  # (M,) its place among the pad slots
    labels: torch.Tensor  # (M,) background where the noise is large
    targets: torch.Tensor  # (M, 10) codes of the clean boxes

    def to(self, device):
        """From pinned memory without waiting."""
        pinned = torch.device(device).type == "cuda"
        pin = lambda t: t.pin_memory() if pinned and t.is_cpu else t
        move = lambda t: pin(t).to(device, non_blocking=True)
        return Denoising(**{key: move(value) for key, value in vars(self).items()})


@functools.lru_cache(maxsize=8)
def attention_mask(groups, per_group, queries, device):
    """True = may attend: own group and the learned queries; never from learned to denoising."""
    pad = groups * per_group
    group = torch.arange(pad + queries, device=device).div(max(per_group, 1), rounding_mode="floor")
    group[pad:] = -1
    return (group[:, None] == group[None, :]) | (group[None, :] == -1)


def prepare(config, boxes, labels, codes, noise, device=None):
    """boxes, labels and codes are lists by sample, noise (S sum G, 3) in [-1, 1], group-major,
    all on the host; the mask is made on `device` once. None without any ground truth."""
    counts = [len(sample) for sample in labels]
    if not sum(counts):
        return None
    groups = config.groups
    per_group = max(counts)
    sample = torch.cat([torch.full((n,), b) for b, n in enumerate(counts)])
    place = torch.cat([torch.arange(n) for n in counts])
    slot = (place[None] + per_group * torch.arange(groups)[:, None]).flatten()
    sample = sample.repeat(groups)
    flat = torch.cat(boxes).repeat(groups, 1)
    centre = flat[:, :3] + noise * flat[:, 3:6] / 2 * config.noise_scale
    low, high = (noise.new_tensor(limit) for limit in POINT_CLOUD_RANGE)
    centre = ((centre - low) / (high - low)).clamp(0, 1)
    anchors = noise.new_zeros(len(counts), groups * per_group, 3)
    anchors[sample, slot] = centre
    tiled = torch.cat(labels).repeat(groups)
    noised = torch.where(noise.norm(dim=1) > config.split, BACKGROUND, tiled)
    mask = attention_mask(groups, per_group, config.queries, device or noise.device)
    return Denoising(anchors, mask, sample, slot, noised, torch.cat(codes).repeat(groups, 1))


def class_normaliser(config, copies):
    return max(copies * 3.14159 / 6 * config.split**3, 1.0)
