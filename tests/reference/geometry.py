"""Frustum coordinates, the two sine embeddings, and the camera rig of the golden numbers."""
import math

import torch

from config import POINT_CLOUD_RANGE, POSITION_RANGE

EPS = 1e-5


def inverse_sigmoid(x):
    x = x.clamp(0, 1)
    return torch.log(x.clamp(min=EPS) / (1 - x).clamp(min=EPS))


def depth_bins(config):
    """Linear-increasing discretisation: the distance between bins grows by one step each."""
    far = POSITION_RANGE[1][0]
    k = torch.arange(config.depth_bins, dtype=torch.float64)
    step = (far - config.depth_start) / (config.depth_bins * (1 + config.depth_bins))
    return config.depth_start + step * k * (k + 1)


def frustum(config, size, padded):
    """u d, v d and d of every cell's top-left corner, each (h, w, D)."""
    h, w = size
    d = depth_bins(config)
    u = torch.arange(w, dtype=torch.float64) * padded[1] / w
    v = torch.arange(h, dtype=torch.float64) * padded[0] / h
    scaled = d.clamp(min=EPS)
    shape = h, w, config.depth_bins
    ud = (u[None, :, None] * scaled).expand(shape)
    vd = (v[:, None, None] * scaled).expand(shape)
    return torch.stack([ud, vd, d.expand(shape)])


def position_range():
    return torch.tensor(POSITION_RANGE, dtype=torch.float64)


def normalised_coordinates(points, img2lidar, limits):
    """(B, N, h, w, D, 3) in units of the position range `limits`. Products and sums are
    element-wise: a matrix product could run in reduced precision."""
    m = img2lidar[:, :, None, None, None, :3]
    p = sum(m[..., i] * points[i][..., None] for i in range(3)) + m[..., 3]
    return (p - limits[0]) / (limits[1] - limits[0])


def sine_axis(count, channels=128):
    """(count, channels): all sines, then all cosines."""
    t = torch.arange(1, count + 1, dtype=torch.float64)
    t = t / (t[-1] + 1e-6) * 2 * math.pi
    half = channels // 2
    argument = t[:, None] / 10000 ** (2 * torch.arange(half, dtype=torch.float64) / channels)
    return torch.cat([argument.sin(), argument.cos()], 1)


def multiview_sine(views, h, w, channels=128):
    """(views * h * w, 3 * channels): view, row, column."""
    view, row, column = (sine_axis(count, channels) for count in (views, h, w))
    shape = views, h, w, channels
    parts = view[:, None, None], row[None, :, None], column[None, None]
    return torch.cat([part.expand(shape) for part in parts], 3).reshape(-1, 3 * channels)


def anchor_sine(anchors, channels=128):
    """(..., 3 * channels): axes in the order y, x, z; sine and cosine alternate."""
    index = torch.arange(channels // 2, device=anchors.device, dtype=anchors.dtype)
    x, y, z = anchors.unbind(-1)
    phase = 2 * math.pi * torch.stack([y, x, z], -1)
    argument = phase[..., None] / 10000 ** (2 * index / channels)
    return torch.stack([argument.sin(), argument.cos()], -1).flatten(-3)


def metres(raw, anchors_logit, delta_t):
    """Boxes (cx, cy, log w, log l, cz, log h, sin, cos, vx, vy) from raw regression."""
    low, high = POINT_CLOUD_RANGE
    extent = [b - a for a, b in zip(low, high)]
    x = (raw[..., 0] + anchors_logit[..., 0]).sigmoid() * extent[0] + low[0]
    y = (raw[..., 1] + anchors_logit[..., 1]).sigmoid() * extent[1] + low[1]
    z = (raw[..., 4] + anchors_logit[..., 2]).sigmoid() * extent[2] + low[2]
    size_w_l, size_h, direction = raw[..., 2:4], raw[..., 5:6], raw[..., 6:8]
    velocity = raw[..., 8:10] / delta_t[:, None, None]
    centre = torch.stack([x, y], -1)
    return torch.cat([centre, size_w_l, z[..., None], size_h, direction, velocity], -1)


def golden_cameras(height, width, views=12):
    """lidar2img (views, 4, 4) of six cameras 60 degrees apart, twice; the second rig is behind."""
    focal = 0.55 * width
    intrinsics = torch.eye(4, dtype=torch.float64)
    intrinsics[0, 0] = intrinsics[1, 1] = focal
    intrinsics[0, 2], intrinsics[1, 2] = width / 2, height / 2
    axes = torch.tensor([[1, 0, 0], [0, 0, -1], [0, 1, 0]], dtype=torch.float64)
    matrices = []
    for view in range(views):
        a = math.radians(60 * (view % 6))
        c, s = math.cos(a), math.sin(a)
        rotation = axes @ torch.tensor([[c, s, 0], [-s, c, 0], [0, 0, 1]], dtype=torch.float64)
        back = 2.5 if view >= 6 else 0.0
        centre = torch.tensor([-0.5 * s, 0.5 * c - back, -0.3], dtype=torch.float64)
        lidar2cam = torch.eye(4, dtype=torch.float64)
        lidar2cam[:3, :3] = rotation
        lidar2cam[:3, 3] = -rotation @ centre
        matrices.append(intrinsics @ lidar2cam)
    return torch.stack(matrices)
