"""A fast data-parallel PyTorch training loop of the reference model, for comparing speed.

python train_peer.py --config petrv2_r50_p4_256x704 --batch 4 --precision bf16
torchrun --nproc-per-node 8 train_peer.py ...          (or any launcher that sets env:// variables)
"""
import argparse
import concurrent.futures
import json
import os
import resource
import statistics
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import assignment
import config as configs
import losses
import train_step
from model import PETRv2
from peer_data import Batches

ITERATIONS_PER_EPOCH = 3517


class Matcher:
    """Solves a layer's assignment on the host while the device runs the later layers."""

    def __init__(self, threads=4):
        self.pool = concurrent.futures.ThreadPoolExecutor(threads)
        self.buffers = {}

    def begin(self, truth, weights):
        self.truth, self.weights, self.pending = truth, weights, []

    def on_layer(self, layer, logits, boxes):
        cost = losses.matching_cost(logits.detach(), boxes.detach(), self.truth, self.weights)
        ready = None
        if cost.is_cuda:
            key = layer, cost.shape
            if key not in self.buffers:
                self.buffers[key] = torch.empty_like(cost, device="cpu", pin_memory=True)
            cost = self.buffers[key].copy_(cost, non_blocking=True)
            ready = torch.cuda.Event(blocking=True)
            ready.record()
        self.pending.append(self.pool.submit(self.solve, cost, ready, self.truth.counts))

    @staticmethod
    def solve(cost, ready, counts):
        if ready is not None:
            ready.synchronize()
        return torch.from_numpy(losses.match_layer(cost.numpy(), counts))

    def result(self, device):
        matches = torch.stack([future.result() for future in self.pending])
        if device.type == "cuda":
            matches = matches.pin_memory()
        return matches.to(device, non_blocking=True)


class MeanCounts:
    """Means over ranks of the positives and the denoising copies, on their way during forward."""

    def __init__(self, positives, copies, device):
        self.values, self.work = (positives, copies), None
        if dist.is_initialized() and dist.get_world_size() > 1:
            counts = torch.tensor(self.values, dtype=torch.float32)
            counts = counts.pin_memory() if device.type == "cuda" else counts
            self.values = counts.to(device, non_blocking=True)
            self.work = dist.all_reduce(self.values, async_op=True)

    def wait(self):
        if self.work is not None:
            self.work.wait()
            self.values = self.values / dist.get_world_size()
        return self.values


class TrainingModule(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model, self.matcher = model, Matcher()

    def forward(self, images, img2lidar, delta_t, truth, dn, counts):
        config, head = self.model.config, self.model.pts_bbox_head
        weights = head.code_weights
        self.matcher.begin(truth, weights if config.match_weighted else None)
        logits, boxes = self.model(
            images, img2lidar, delta_t, dn, on_layer=self.matcher.on_layer
        )
        first = 0 if dn is None else dn.anchors.shape[1]
        matches = self.matcher.result(images.device)
        mean_positives, mean_copies = counts.wait()
        terms = losses.detection_losses(
            logits[:, :, first:], boxes[:, :, first:], matches, truth, weights,
            truth.positives(config.queries), mean_positives,
        )  # fmt: skip
        if dn is not None:
            terms += losses.denoising_losses(
                logits[:, :, :first], boxes[:, :, :first], dn, config, weights, mean_copies
            )
        return torch.stack(terms).sum()


class Stepper:
    """Backward, clip and fused AdamW; a non-finite gradient skips the update on the device."""

    def __init__(self, module, config, precision, device):
        model = module.module.model if isinstance(module, DistributedDataParallel) else module.model
        self.config = config
        self.parameters = [p for p in model.parameters() if p.requires_grad]
        self.optimizer = train_step.adamw(model, config.lr, fused=True)
        self.scaler = None
        if precision == "fp16":
            self.scaler = torch.amp.GradScaler(device.type, init_scale=512, growth_interval=1000)
        self.skipped = torch.zeros((), device=device)

    def step(self, loss, iteration):
        optimizer = self.optimizer
        train_step.set_learning_rate(
            optimizer, iteration, ITERATIONS_PER_EPOCH, self.config.epochs
        )
        optimizer.zero_grad()
        (loss if self.scaler is None else self.scaler.scale(loss)).backward()
        if self.scaler is not None:
            self.scaler.unscale_(optimizer)
        norm = train_step.clip(self.parameters)
        not_finite = (~norm.isfinite()).float()
        self.skipped += not_finite
        if self.scaler is not None:
            self.scaler.step(optimizer)
            self.scaler.update()
        else:
            optimizer.found_inf = not_finite
            optimizer.step()


def build(arguments, config, device):
    torch.manual_seed(0)
    model = PETRv2(config)
    model.initialise()
    model.to(device).train()
    if arguments.channels_last:
        model.to(memory_format=torch.channels_last)
    model.amp_dtype = {"bf16": torch.bfloat16, "fp16": torch.float16}.get(arguments.precision)
    model.img_backbone.fold = arguments.fold_norm
    model.img_backbone.recompute = arguments.recompute
    model.pts_bbox_head.transformer.decoder.recompute = arguments.recompute
    if arguments.compile:
        compiled = [model.img_backbone, *model.pts_bbox_head.transformer.decoder.layers]
        for part in compiled + [model.img_neck] * (model.img_neck is not None):
            part.compile()
    module = TrainingModule(model)
    if not dist.is_initialized():
        return module
    return DistributedDataParallel(
        module,
        device_ids=[device.index] if device.type == "cuda" else None,
        broadcast_buffers=False,
        gradient_as_bucket_view=True,
        static_graph=arguments.static_graph,
    )


class Clock:
    """Step times by device events, read only at the end."""

    def __init__(self, device):
        self.device, self.marks = device, []

    def mark(self):
        if self.device.type == "cuda":
            event = torch.cuda.Event(enable_timing=True)
            event.record()
            self.marks.append(event)
        else:
            self.marks.append(time.perf_counter())

    def seconds(self):
        pairs = list(zip(self.marks, self.marks[1:]))
        if self.device.type == "cuda":
            torch.cuda.synchronize()
            return [a.elapsed_time(b) / 1000 for a, b in pairs]
        return [b - a for a, b in pairs]


def peak_memory(device):
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device)
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def train(arguments, config, device, rank, world):
    module = build(arguments, config, device)
    batches = Batches(config, arguments.batch, arguments.boxes, device, rank, arguments.images,
                      arguments.workers)  # fmt: skip
    stepper = Stepper(module, config, arguments.precision, device)
    clock, history = Clock(device), []
    for iteration in range(arguments.warm_up + arguments.steps):
        if iteration == arguments.warm_up:
            if device.type == "cuda":
                torch.cuda.synchronize()
            start = time.perf_counter()
            clock.mark()
        images, img2lidar, delta_t, truth, dn = batches.next()
        positives = truth.positives(config.queries)
        counts = MeanCounts(positives, 0 if dn is None else len(dn.labels), device)
        loss = module(images, img2lidar, delta_t, truth, dn, counts)
        stepper.step(loss, iteration)
        history.append(loss.detach())
        if iteration >= arguments.warm_up:
            clock.mark()
    steps = clock.seconds()
    elapsed = time.perf_counter() - start
    history = torch.stack(history).tolist()
    return {
        "config": arguments.config,
        "device": torch.cuda.get_device_name() if device.type == "cuda" else "cpu",
        "ranks": world,
        "batch": arguments.batch,
        "precision": arguments.precision,
        "head": "tf32" if torch.backends.cuda.matmul.allow_tf32 else "fp32",
        "solver": "scipy" if assignment.linear_sum_assignment else "own",
        "samples_per_s": world * arguments.batch * arguments.steps / elapsed,
        "step_ms_median": 1000 * statistics.median(steps),
        "step_ms_longest": 1000 * max(steps),
        "peak_memory_gib": peak_memory(device) / 2**30,
        "skipped": int(stepper.skipped.item()),
        "first_loss": history[0],
        "last_loss": history[-1],
    }


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    flag = argparse.BooleanOptionalAction
    parser.add_argument("--config", default="petrv2_r50_p4_256x704")
    parser.add_argument("--size", help="HxW in place of the configuration's")
    parser.add_argument("--queries", type=int)
    parser.add_argument("--batch", type=int, default=1, help="samples on each rank")
    parser.add_argument("--boxes", type=int, default=30, help="boxes in each sample")
    parser.add_argument("--precision", choices=("fp32", "tf32", "bf16", "fp16"), default="bf16")
    parser.add_argument("--tf32-head", action="store_true", help="with bf16 or fp16: head in tf32")
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--warm-up", type=int, default=10, help="steps before the timed ones")
    parser.add_argument("--images", help="folder of 1600x900 JPEG files")
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--channels-last", action=flag, default=True)
    parser.add_argument("--fold-norm", action=flag, default=True, help="norms into convolutions")
    parser.add_argument("--static-graph", action=flag, default=True)
    parser.add_argument("--recompute", action="store_true", help="activation checkpointing")
    parser.add_argument("--json", action="store_true", help="one line of JSON")
    return parser.parse_args()


def main():
    arguments = parse_arguments()
    height, width = (int(p) for p in arguments.size.split("x")) if arguments.size else (None, None)
    config = configs.named(arguments.config, height=height, width=width, queries=arguments.queries)
    rank, world = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
    device = torch.device(arguments.device)
    if device.type == "cuda":
        device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", 0)))
        torch.cuda.set_device(device)
    tf32 = arguments.precision == "tf32"
    torch.backends.cudnn.allow_tf32 = tf32
    torch.backends.cuda.matmul.allow_tf32 = tf32 or arguments.tf32_head
    torch.backends.cudnn.benchmark = True
    if "RANK" in os.environ:
        dist.init_process_group("nccl" if device.type == "cuda" else "gloo")
    result = train(arguments, config, device, rank, world)
    if rank == 0:
        if arguments.json:
            print(json.dumps(result))
        else:
            for name, value in result.items():
                text = f"{value:.4g}" if isinstance(value, float) else value
                print(f"{name:16} {text}")
    if dist.is_initialized():
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
