"""Acceptance columns by stage and precision. fp64 is 1e-8 throughout."""

import math

FP64 = 1e-8
ROUNDING_ABSOLUTE = 5e-6  # embeddings that no matrix product touches
COORDINATES_ABSOLUTE = 2e-6
LOG_ODDS_ABSOLUTE = 1e-3
NAMES = ("fp32", "tf32", "bf16", "fp16")

# Relative differences. fp32: ten times what the CPU shows. tf32, bf16, fp16: three times what was measured on an H200
# at full size (docs/numerics.md). Single gradients of the head have no bound there: the box loss is an
# L1, and where one difference changes its sign a gradient of few terms changes by its own size.
TOLD_ONLY = math.inf
RELATIVE = {
    "backbone": (1e-4, 1.9e-3, 2.7e-2, 2.7e-3),
    "feature": (1e-4, 2.1e-3, 2.2e-2, 3.2e-3),
    "coords": (2e-6, 2e-6, 2e-6, 2e-6),
    "log_odds": (3e-6, 3e-6, 3e-6, 3e-6),
    "sine": (5e-6, 5e-6, 5e-6, 5e-6),
    "pe3d": (6e-6, 1.2e-3, 6e-6, 6e-6),
    "query": (6e-6, 1.1e-3, 6e-6, 6e-6),
    "gate": (6e-6, 1.3e-3, 1.4e-2, 1.7e-3),
    "pos": (6e-6, 1.8e-3, 9.3e-3, 1.9e-3),
    "decoder": (1e-5, 3.1e-3, 2.7e-2, 2.9e-3),
    "class": (1e-5, 4e-3, 3e-2, 4e-3),
    "raw": (1e-5, 3.6e-3, 3e-2, 2.8e-3),
    "box": (1e-5, 1.3e-3, 8e-3, 1.1e-3),
    "loss": (1e-5, 2.7e-3, 1.3e-2, 2.6e-3),
    "gradient": (3e-4, TOLD_ONLY, TOLD_ONLY, TOLD_ONLY),
    "gradient of backbone and position encoder": (3e-3, 1.7e-1, 5.3e-1, 2.3e-1),
    "gradient norm": (3e-4, 4e-4, 7e-3, 1.2e-3),
    "step": (1e-6, 1e-6, 1e-6, 1e-6),
    "decoded": (1e-5, 1.1e-3, 2.4e-3, 6e-4),
}
ABSOLUTE = {
    "coords": COORDINATES_ABSOLUTE,
    "log_odds": LOG_ODDS_ABSOLUTE,
    "sine": ROUNDING_ABSOLUTE,
}


def relative(family, precision):
    if precision == "fp64":
        return FP64
    return RELATIVE[family][NAMES.index(precision)]


def family_of_stage(name):
    head = name.partition(".")[0]
    if head in ("P4", "P5", "projection"):
        return "feature"
    if head.startswith(("stem", "layer", "stage")):
        return "backbone"
    return head


def family_of_gradient(name):
    # The neck and the input projection pass the gradient of the position encoder's product on.
    if name.startswith(("img_backbone.", "pts_bbox_head.position_encoder.")):
        return "gradient of backbone and position encoder"
    return "gradient"


def exact_zero(name):
    """Parameters whose whole gradient is zero but for rounding."""
    first_self_attention = "decoder.layers.0.attentions.0.attn.in_proj_weight"
    return name.endswith((first_self_attention, "adapt_pos3d.2.bias"))


def zero_thirds(name):
    """Which of (first, middle, last) third of an in-projection bias has a zero gradient."""
    if not name.endswith("attn.in_proj_bias"):
        return (False, False, False)
    return ("layers.0.attentions.0." in name, True, False)
