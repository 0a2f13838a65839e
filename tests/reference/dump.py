"""One forward, backward and optimiser step with formula weights, summarised as JSON.

The same questions as `petrv2 verify --json` answers, so that compare.py can set both side by side.
Layout of the file:
  config, size, queries, batch, device, precision
  stages       {name: summary}, a summary being {shape, n, mean, abs_mean, l2, first, last}
  parameters   {name: {grad: summary, after_step: summary}}, trainable ones; grad before clipping
  losses       {loss_cls.L, loss_box.L, dn_loss_cls.L, dn_loss_box.L, total}; L: d0, d1, .., last
  assignments  [layer][sample] = list of [query, ground truth], by query
  grad_norm    global L2 before clipping
  decoded      [sample] = {boxes: [[x y z w l h theta vx vy]], scores, labels}, at most 300
"""
import argparse
import json
import pathlib

import torch

import config as configs
import filler
import golden_case
import losses
import model as models
import train_step

ITERATIONS_PER_EPOCH = 3517  # of no effect at iteration 0
BASE_LR = 2e-4
PRECISIONS = ("fp64", "fp32", "tf32", "bf16", "fp16")


LOSS_NAMES = {"class": "loss_cls", "box": "loss_box", "dn_class": "dn_loss_cls", "dn_box": "dn_loss_box"}


def layer_name(layer, num_layers):
    return "last" if layer + 1 == num_layers else f"d{layer}"


def summary(tensor):
    flat = tensor.detach().flatten().double().cpu()
    return {
        "shape": list(tensor.shape),
        "n": flat.numel(),
        "mean": flat.mean().item(),
        "abs_mean": flat.abs().mean().item(),
        "l2": flat.norm().item(),
        "first": flat[:16].tolist(),
        "last": flat[-16:].tolist(),
    }


def pairs_of(matches):
    """(layers, B, G) of queries to lists of [query, ground truth]."""
    return [
        [sorted([q, g] for g, q in enumerate(sample) if q >= 0) for sample in layer]
        for layer in matches.tolist()
    ]


def matches_of(pairs, truths):
    matches = torch.full((len(pairs), len(pairs[0]), truths), -1)
    for l, layer in enumerate(pairs):
        for b, sample in enumerate(layer):
            for query, truth in sample:
                matches[l, b, truth] = query
    return matches


def set_precision(model, precision):
    tf32 = precision == "tf32"
    torch.backends.cuda.matmul.allow_tf32 = tf32
    torch.backends.cudnn.allow_tf32 = tf32
    model.amp_dtype = {"bf16": torch.bfloat16, "fp16": torch.float16}.get(precision)


def read_boxes(path, batch, dtype):
    content = {"boxes": golden_case.BOXES, "labels": golden_case.LABELS}
    if path:
        content = json.loads(pathlib.Path(path).read_text())
    boxes = torch.tensor(content["boxes"], dtype=dtype).reshape(-1, 9)
    labels = torch.tensor(content["labels"], dtype=torch.int64)
    if len(boxes) != len(labels):
        raise SystemExit(f"{path}: {len(boxes)} boxes and {len(labels)} labels")
    return [boxes] * batch, [labels] * batch


def run(config, batch=1, boxes_path=None, bn3_scale=1.0, device="cpu", precision="fp64",
        recompute=False, assignments=None):  # fmt: skip
    dtype = torch.float64 if precision == "fp64" else torch.float32
    device = torch.device(device)
    model = models.build(config, dtype=dtype)
    filler.fill_model(model, bn3_scale)
    model.to(device).eval()  # eval: dropout 0; batch norm is frozen anyway
    set_precision(model, precision)
    model.img_backbone.recompute = recompute

    shape = batch, config.views, 3, config.height, config.width
    images = filler.u(filler.IMAGE, shape, dtype).to(device).requires_grad_(recompute)
    cameras = golden_case.cameras(batch, config.height, config.width, config.views)
    delta_t = torch.full((batch,), golden_case.DELTA_T, dtype=dtype, device=device)
    boxes, labels = read_boxes(boxes_path, batch, dtype)
    dn = golden_case.denoising_queries(config, boxes, labels) if config.denoising else None
    dn = None if dn is None else dn.to(device)
    truth = losses.GroundTruth.pad([b.to(device) for b in boxes], [l.to(device) for l in labels])

    stages = {}
    record = lambda name, tensor: stages.__setitem__(name, summary(tensor))
    outputs = model(images, cameras.to(device, dtype), delta_t, dn, record)
    matches = matches_of(assignments, truth.labels.shape[1]) if assignments else None
    head = model.pts_bbox_head
    terms, total, matches = golden_case.all_losses(config, head, outputs, truth, dn, matches)
    total.backward()
    optimizer = train_step.adamw(model, BASE_LR, foreach=False)
    trainable = [(n, p) for n, p in model.named_parameters() if p.requires_grad]
    parameters = {name: {"grad": summary(p.grad)} for name, p in trainable}
    norm = train_step.step(model, optimizer, 0, ITERATIONS_PER_EPOCH, config.epochs)
    for name, p in trainable:
        parameters[name]["after_step"] = summary(p)

    first = 0 if dn is None else dn.anchors.shape[1]
    decoded = []
    for logits, codes in zip(outputs[0][-1, :, first:], outputs[1][-1, :, first:]):
        names = "boxes", "scores", "labels"
        decoded.append({k: v.tolist() for k, v in zip(names, losses.decode(logits, codes))})
    named_losses = {
        f"{LOSS_NAMES[kind]}.{layer_name(layer, len(values))}": value.item()
        for kind, values in terms.items()
        for layer, value in enumerate(values)
    }
    return {
        "size": [config.height, config.width],
        "queries": config.queries,
        "batch": batch,
        "device": device.type,
        "precision": precision,
        "stages": stages,
        "parameters": parameters,
        "losses": {**named_losses, "total": total.item()},
        "assignments": pairs_of(matches),
        "grad_norm": norm.item(),
        "decoded": decoded,
    }


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--config", default="petrv2_r50_p4_256x704")
    parser.add_argument("--size", help="HxW in place of the configuration's")
    parser.add_argument("--queries", type=int)
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--boxes", help="JSON: {boxes: [[x y z w l h theta vx vy]], labels: []}")
    parser.add_argument("--bn3-scale", type=float, default=1.0)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--precision", choices=PRECISIONS, default="fp64")
    parser.add_argument("--assignments", help="take the assignment of this earlier dump")
    parser.add_argument("--recompute", action="store_true", help="less memory: backbone twice")
    parser.add_argument("--json", help="output file; standard output without it")
    return parser.parse_args()


def main():
    arguments = parse_arguments()
    height, width = None, None
    if arguments.size:
        height, width = (int(part) for part in arguments.size.lower().split("x"))
        if height % 32 or width % 32:
            raise SystemExit("--size: both numbers must be multiples of 32")
    config = configs.named(
        arguments.config, height=height, width=width, queries=arguments.queries
    )
    forced = None
    if arguments.assignments:
        forced = json.loads(pathlib.Path(arguments.assignments).read_text())["assignments"]
    result = run(config, arguments.batch, arguments.boxes, arguments.bn3_scale, arguments.device,
                 arguments.precision, arguments.recompute, forced)  # fmt: skip
    text = json.dumps({"config": arguments.config, **result})
    if arguments.json:
        pathlib.Path(arguments.json).write_text(text + "\n")
    else:
        print(text)


if __name__ == "__main__":
    main()
