"""Target code, matching cost, focal and L1 losses of all decoder layers at once, and decoding."""
import dataclasses

import numpy as np
import torch
from torch.nn import functional as F

import denoising
from assignment import match
from config import POSITION_RANGE

ALPHA, CLASS_WEIGHT, BOX_WEIGHT = 0.25, 2.0, 0.25
BACKGROUND = denoising.BACKGROUND


def encode(boxes):
    """Target codes (..., 10) of boxes (x, y, z, w, l, h, theta, vx, vy)."""
    x, y, z, w, l, h, theta, vx, vy = boxes.unbind(-1)
    code = x, y, w.log(), l.log(), z, h.log(), theta.sin(), theta.cos(), vx, vy
    return torch.stack(code, -1)


@dataclasses.dataclass
class GroundTruth:
    """Padded to the longest sample; counts are known on the host."""

    counts: list
    codes: torch.Tensor  # (B, G, 10)
    labels: torch.Tensor  # (B, G)

    @classmethod
    def pad(cls, boxes, labels):
        counts = [len(sample) for sample in labels]
        shape = len(counts), max(counts, default=0)
        codes = boxes[0].new_zeros(*shape, 10)
        padded = labels[0].new_zeros(shape)
        for b, n in enumerate(counts):
            codes[b, :n] = encode(boxes[b])
            padded[b, :n] = labels[b]
        return cls(counts, codes, padded)

    def positives(self, queries):
        return sum(min(count, queries) for count in self.counts)


def focal_element(logits, positive):
    """Element-wise focal loss from logits; positive is a boolean tensor."""
    p = logits.sigmoid()
    log_p, log_1_p = F.logsigmoid(logits), F.logsigmoid(-logits)
    return torch.where(
        positive, -ALPHA * (1 - p).square() * log_p, -(1 - ALPHA) * p.square() * log_1_p
    )


def matching_cost(logits, boxes, truth, weights=None):
    """(B, Q, G), without gradient. With code weights the matcher uses all ten dims."""
    with torch.no_grad():
        p = logits.sigmoid()
        positive = -(p + 1e-12).log() * ALPHA * (1 - p).square()
        negative = -(1 - p + 1e-12).log() * (1 - ALPHA) * p.square()
        index = truth.labels[:, None].expand(-1, logits.shape[1], -1)
        cost = CLASS_WEIGHT * (positive - negative).gather(2, index)
        codes = truth.codes
        if weights is not None:
            boxes, codes, dims = boxes * weights, codes * weights, 10
        else:
            dims = 8
        distance = (boxes[:, :, None, :dims] - codes[:, None, :, :dims]).abs().sum(-1)
        return (cost + BOX_WEIGHT * distance).nan_to_num(100.0, 100.0, -100.0)


def match_layer(cost, counts):
    """cost (B, Q, G) on the host. The query of each ground truth (B, G), -1 where there is none."""
    result = np.full((cost.shape[0], cost.shape[2]), -1, dtype=np.int64)
    for b, count in enumerate(counts):
        result[b, :count] = match(cost[b, :, :count])
    return result


def at_least_one(count):
    return count.clamp(min=1) if isinstance(count, torch.Tensor) else max(count, 1)


def l1_sum(boxes, codes, weights, valid):
    """Sum over all but the first dimension of weighted |boxes - codes| where valid."""
    valid = valid[..., None] & codes.isfinite().all(-1, keepdim=True)
    difference = (boxes - torch.where(valid, codes, 0)).abs() * weights
    return torch.where(valid, difference, 0).flatten(1).sum(1)


def detection_losses(logits, boxes, matches, truth, weights, class_count, box_count):
    """Per-layer losses, each (layers,). logits, boxes (layers, B, Q, 10), matches (layers, B, G).
    class_count: positives of this micro-batch; box_count: their mean over ranks, which may be
    a tensor."""
    layers, batch, queries, classes = logits.shape
    index = torch.where(matches < 0, queries, matches)
    labels = matches.new_full((layers, batch, queries + 1), BACKGROUND)
    labels.scatter_(2, index, truth.labels.expand_as(index))
    positive = labels[:, :, :queries, None] == torch.arange(classes, device=logits.device)
    class_sum = focal_element(logits, positive).flatten(1).sum(1)

    chosen = matches.clamp(min=0)[..., None].expand(-1, -1, -1, 10)
    box_sum = l1_sum(boxes.gather(2, chosen), truth.codes.expand(layers, -1, -1, -1), weights,
                     matches >= 0)  # fmt: skip
    class_loss = CLASS_WEIGHT * class_sum / at_least_one(class_count)
    box_loss = BOX_WEIGHT * box_sum / at_least_one(box_count)
    return class_loss.nan_to_num(), box_loss.nan_to_num()


def denoising_losses(logits, boxes, dn, config, weights, box_count):
    """logits, boxes (layers, B, pad, 10): only real slots count."""
    logits, boxes = logits[:, dn.sample, dn.slot], boxes[:, dn.sample, dn.slot]
    positive = dn.labels[:, None] == torch.arange(logits.shape[-1], device=logits.device)
    class_sum = focal_element(logits, positive.expand_as(logits)).flatten(1).sum(1)
    weights = weights.clone()
    weights[6:8] = 0
    valid = torch.ones(boxes.shape[:2], dtype=torch.bool, device=boxes.device)
    box_sum = l1_sum(boxes, dn.targets.expand_as(boxes), weights, valid)
    class_loss = CLASS_WEIGHT * class_sum / denoising.class_normaliser(config, len(dn.labels))
    box_loss = BOX_WEIGHT * box_sum / at_least_one(box_count)
    return class_loss.nan_to_num(), box_loss.nan_to_num()


def decode(logits, boxes, limit=300):
    """One sample of the last layer: boxes (x, y, z, w, l, h, theta, vx, vy), scores, labels."""
    scores, index = logits.sigmoid().flatten().topk(min(limit, logits.numel()))
    classes = logits.shape[-1]
    labels, code = index % classes, boxes[index.div(classes, rounding_mode="floor")]
    centre = code[:, [0, 1, 4]]
    theta = torch.atan2(code[:, 6], code[:, 7])[:, None]
    result = torch.cat([centre, code[:, [2, 3, 5]].exp(), theta, code[:, 8:]], 1)
    low, high = (centre.new_tensor(limit) for limit in POSITION_RANGE)
    kept = ((centre >= low) & (centre <= high)).all(1)
    return result[kept], scores[kept], labels[kept]
