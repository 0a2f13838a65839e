"""Acceptance columns of section 9.2, by stage. fp64 is 1e-8 throughout; fp16 uses bf16's column."""

FP64 = 1e-8
ROUNDING_ABSOLUTE = 5e-6  # embeddings that no matrix product touches
COORDINATES_ABSOLUTE = 2e-6
LOG_ODDS_ABSOLUTE = 1e-3
NAMES = ("fp32", "tf32", "bf16")

# Relative differences. Rows without a column of their own in section 9.2 take the nearest one.
RELATIVE = {
    "backbone": (1e-4, 3e-3, 2e-2),
    "feature": (1e-4, 2e-3, 2e-2),
    "coords": (2e-6, 2e-6, 2e-6),
    "log_odds": (3e-6, 3e-6, 3e-6),
    "sine": (5e-6, 5e-6, 5e-6),
    "pe3d": (6e-6, 2e-3, 2e-3),
    "query": (6e-6, 2e-3, 2e-3),
    "gate": (6e-6, 2e-3, 1e-2),
    "pos": (6e-6, 2e-3, 1e-2),
    "decoder": (1e-5, 5e-3, 2e-2),
    "class": (1e-5, 5e-3, 2e-2),
    "raw": (1e-5, 5e-3, 2e-2),
    "box": (1e-5, 5e-3, 1e-2),
    "loss": (1e-5, 5e-3, 2e-2),
    "gradient": (3e-4, 1e-2, 5e-2),
    "gradient of backbone and position encoder": (3e-3, 1e-2, 5e-2),
    "gradient norm": (3e-4, 1e-2, 5e-2),
    "step": (1e-6, 1e-6, 1e-6),
    "decoded": (1e-5, 5e-3, 1e-2),
}
ABSOLUTE = {
    "coords": COORDINATES_ABSOLUTE,
    "log_odds": LOG_ODDS_ABSOLUTE,
    "sine": ROUNDING_ABSOLUTE,
}


def relative(family, precision):
    if precision == "fp64":
        return FP64
    return RELATIVE[family][NAMES.index({"fp16": "bf16"}.get(precision, precision))]


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
    """Parameters whose whole gradient is zero but for rounding (section 9.4)."""
    first_self_attention = "decoder.layers.0.attentions.0.attn.in_proj_weight"
    return name.endswith((first_self_attention, "adapt_pos3d.2.bias"))


def zero_thirds(name):
    """Which of (first, middle, last) third of an in-projection bias has a zero gradient."""
    if not name.endswith("attn.in_proj_bias"):
        return (False, False, False)
    return ("layers.0.attentions.0." in name, True, False)
