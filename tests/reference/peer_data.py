"""Inputs of the training peer: fixed random tensors, or a folder of JPEG files decoded every step.

Cameras, boxes and times are made up and fixed; only the images come from the folder."""
import pathlib

import numpy as np
import torch
from PIL import Image

import denoising
import losses
from golden_case import DELTA_T, cameras

MEAN = (123.675, 116.28, 103.53)
STD = (58.395, 57.12, 57.375)
SOURCE = 900, 1600
RANGES = {256: (0.386, 0.55), 320: (0.47, 0.625), 512: (0.8, 1.0), 640: (0.94, 1.25)}


def random_truth(batch, count, generator):
    """Boxes (x, y, z, w, l, h, theta, vx, vy) and labels by sample, on the host."""
    low = torch.tensor([-45, -45, -3, 0.5, 0.5, 1, -3, -5, -5.0])
    high = torch.tensor([45, 45, 1, 3, 8, 3, 3, 5, 5.0])
    boxes = [low + (high - low) * torch.rand(count, 9, generator=generator) for _ in range(batch)]
    labels = [torch.randint(0, 10, (count,), generator=generator) for _ in range(batch)]
    return boxes, labels


class Folder(torch.utils.data.IterableDataset):
    """Endless samples of (views, H, W, 3) uint8 images: one resize, crop and flip for a sample."""

    def __init__(self, folder, config, seed):
        self.paths = sorted(pathlib.Path(folder).rglob("*.jpg"))
        if not self.paths:
            raise SystemExit(f"no *.jpg under {folder}")
        self.config, self.seed = config, seed

    def __iter__(self):
        worker = torch.utils.data.get_worker_info()
        rng = np.random.default_rng((self.seed, worker.id if worker else 0))
        while True:
            yield self.sample(rng)

    def sample(self, rng):
        config = self.config
        height, width = config.height, config.width
        factor = rng.uniform(*RANGES.get(height, (0.4, 0.55)))
        size = int(SOURCE[1] * factor), int(SOURCE[0] * factor)
        left = int(rng.uniform(0, max(0, size[0] - width)))
        top = size[1] - height
        flip = rng.random() < 0.5
        first = rng.integers(len(self.paths))
        images = np.empty((config.views, height, width, 3), np.uint8)
        for view in range(config.views):
            with Image.open(self.paths[(first + view) % len(self.paths)]) as image:
                image = image.convert("RGB").resize(size, Image.Resampling.BICUBIC)
                image = image.crop((left, top, left + width, top + height))
                images[view] = np.asarray(image)[:, ::-1] if flip else np.asarray(image)
        return torch.from_numpy(images)


class Batches:
    """Yields the arguments of the training module, on the device, without waiting for it."""

    def __init__(self, config, batch, boxes, device, rank, folder=None, workers=4):
        self.config, self.device = config, device
        self.generator = torch.Generator().manual_seed(rank)
        self.boxes, self.labels = random_truth(batch, boxes, self.generator)
        self.codes = [losses.encode(sample) for sample in self.boxes]
        views = cameras(batch, config.height, config.width, config.views)
        self.img2lidar = views.contiguous().to(device, torch.float32)
        self.delta_t = torch.full((batch,), DELTA_T, device=device)
        self.truth = losses.GroundTruth.pad(
            [b.to(device) for b in self.boxes], [l.to(device) for l in self.labels]
        )
        self.mean = torch.tensor(MEAN, device=device)
        self.std = torch.tensor(STD, device=device)
        self.images = None
        if folder:
            loader = torch.utils.data.DataLoader(
                Folder(folder, config, rank), batch, num_workers=workers,
                pin_memory=device.type == "cuda", persistent_workers=workers > 0,
                prefetch_factor=4 if workers else None,
            )  # fmt: skip
            self.loader = iter(loader)
        else:
            shape = batch, config.views, config.height, config.width, 3
            self.images = torch.randn(shape, generator=self.generator).to(device)
            self.images = self.images.permute(0, 1, 4, 2, 3)

    def next_images(self):
        if self.images is not None:
            return self.images
        images = next(self.loader).to(self.device, non_blocking=True)
        return ((images.float() - self.mean) / self.std).permute(0, 1, 4, 2, 3)

    def next(self):
        dn = None
        if self.config.denoising:
            copies = self.config.groups * sum(self.truth.counts)
            noise = torch.rand(copies, 3, generator=self.generator) * 2 - 1
            truth = self.boxes, self.labels, self.codes
            dn = denoising.prepare(self.config, *truth, noise, self.device)
            dn = dn and dn.to(self.device)
        return self.next_images(), self.img2lidar, self.delta_t, self.truth, dn
