"""One forward, loss and backward of the golden inputs, shared by the golden test and the dump."""
import torch

import denoising
import filler
import losses
from geometry import golden_cameras

BOXES = (
    (10, -5, -1, 1.9, 4.5, 1.6, 0.3, 2, -1),
    (-20, 12, -0.5, 0.7, 0.8, 1.7, -1.2, 0.1, 1.2),
    (3, 30, 0, 2.5, 8, 3.2, 2.8, 0, 5),
)
LABELS = (0, 8, 3)
DELTA_T = 0.5


def cameras(batch, height, width, views):
    """img2lidar (B, N, 4, 4), inverted in fp64."""
    return golden_cameras(height, width, views).inverse().expand(batch, -1, -1, -1)


def denoising_queries(config, boxes, labels):
    """Noise by formula in place of random numbers; boxes and labels by sample, on the host."""
    copies = config.groups * sum(len(sample) for sample in labels)
    noise = 0.6 * filler.u(filler.DENOISING, (copies, 3), boxes[0].dtype)
    codes = [losses.encode(sample) for sample in boxes]
    return denoising.prepare(config, boxes, labels, codes, noise)


def solve(logits, boxes, truth, weights):
    """(layers, B, G) on the host, and the cost matrices they come from."""
    costs = [losses.matching_cost(*layer, truth, weights).cpu() for layer in zip(logits, boxes)]
    solved = [losses.match_layer(cost.numpy(), truth.counts) for cost in costs]
    return torch.stack([torch.from_numpy(m) for m in solved]), costs


def all_losses(config, head, outputs, truth, dn=None, matches=None):
    """Losses by name, their sum, and the assignment. Given matches are taken as they are."""
    logits, boxes = outputs
    first = 0 if dn is None else dn.anchors.shape[1]
    learned = logits[:, :, first:], boxes[:, :, first:]
    weights = head.code_weights
    if matches is None:
        matches, _ = solve(*learned, truth, weights if config.match_weighted else None)
    count = truth.positives(config.queries)
    terms = {}
    terms["class"], terms["box"] = losses.detection_losses(
        *learned, matches.to(logits.device), truth, weights, count, count
    )
    if config.denoising:
        if dn is None:
            zero = logits.sum((1, 2, 3)) * 0
            terms["dn_class"] = terms["dn_box"] = zero
        else:
            terms["dn_class"], terms["dn_box"] = losses.denoising_losses(
                logits[:, :, :first], boxes[:, :, :first], dn, config, weights, len(dn.labels)
            )
    total = sum(value.sum() for value in terms.values())
    return terms, total, matches
