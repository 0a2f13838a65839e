"""One optimiser step: parameter groups, learning-rate schedule, clipping, AdamW."""
import math

import torch

CLIP, WEIGHT_DECAY, BACKBONE_FACTOR = 35.0, 0.01, 0.1
WARM_UP, WARM_UP_RATIO, FLOOR_RATIO = 500, 1 / 3, 1e-3


def learning_rate(base, iteration, iterations_per_epoch, epochs):
    epoch = iteration // iterations_per_epoch
    floor = FLOOR_RATIO * base
    regular = floor + 0.5 * (base - floor) * (1 + math.cos(math.pi * epoch / epochs))
    if iteration < WARM_UP:
        return regular * (1 - (1 - iteration / WARM_UP) * (1 - WARM_UP_RATIO))
    return regular


def parameter_groups(model, base):
    backbone, others = [], []
    for name, parameter in model.named_parameters():
        if parameter.requires_grad:
            (backbone if "img_backbone." in name else others).append(parameter)
    return [
        {"params": others, "lr": base, "base": base},
        {"params": backbone, "lr": base * BACKBONE_FACTOR, "base": base * BACKBONE_FACTOR},
    ]


def adamw(model, base, **options):
    groups = parameter_groups(model, base)
    return torch.optim.AdamW(
        groups, betas=(0.9, 0.999), eps=1e-8, weight_decay=WEIGHT_DECAY, **options
    )


def set_learning_rate(optimizer, iteration, iterations_per_epoch, epochs):
    for group in optimizer.param_groups:
        group["lr"] = learning_rate(group["base"], iteration, iterations_per_epoch, epochs)


def clip(parameters):
    """Scales the gradients in place; returns their norm before. Never waits for the device."""
    return torch.nn.utils.clip_grad_norm_(parameters, CLIP, error_if_nonfinite=False)


def step(model, optimizer, iteration, iterations_per_epoch, epochs):
    """Clip and step; a non-finite gradient skips the update. Returns the norm before clipping."""
    set_learning_rate(optimizer, iteration, iterations_per_epoch, epochs)
    norm = clip([p for p in model.parameters() if p.requires_grad])
    if norm.isfinite():
        optimizer.step()
    return norm
