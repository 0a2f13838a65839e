"""A small, ordinary torch.distributed training job; it knows nothing of the launcher that starts it.

Every rank trains the same small convolutional net under DistributedDataParallel to tell from which of
a few images a crop was cut. The images are the JPEG files under HVDRUN_DATA, else those of
../shared/data/nuscenes-frame beside the checkout, else images made up here, the same on all ranks.
At the end each rank prints one line with a hash over all parameters: it must be the same everywhere.
"""
import argparse
import hashlib
import os
import pathlib
import socket
import sys

import numpy as np
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

CROP = 32
BATCH = 32


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--learning-rate", type=float, default=0.2)
    parser.add_argument("--fail-rank", type=int, help="this rank raises an exception")
    parser.add_argument("--fail-step", type=int, default=1, help="before this step (from 0)")
    return parser.parse_args()


def image_paths():
    beside_checkout = pathlib.Path(__file__).resolve().parents[3] / "shared/data/nuscenes-frame"
    folder = pathlib.Path(os.environ.get("HVDRUN_DATA", beside_checkout))
    return sorted(folder.rglob("*.jpg"))[:8]


def decode(path):
    from PIL import Image

    with Image.open(path) as image:
        image.draft("RGB", (200, 112))  # the JPEG decoder scales down while it decodes
        return np.asarray(image.convert("RGB").resize((160, 90)))


def made_up_images(count=6):
    """Stripes of a direction and colour of their own for each image, and a little noise."""
    rng = np.random.default_rng(1)
    y, x = np.mgrid[0:90, 0:160] / 16.0
    images = []
    for k in range(count):
        wave = np.sin(x * np.cos(k) * (1 + k % 3) + y * np.sin(k) * 2)[..., None]
        colour = rng.uniform(40, 215, size=3)
        images.append(np.clip(colour + 40 * wave + rng.normal(0, 8, (90, 160, 3)), 0, 255))
    return [image.astype(np.uint8) for image in images]


def load_images():
    """[images, 3, 90, 160], values around zero, and where they are from."""
    paths = image_paths()
    arrays = [decode(path) for path in paths] if paths else made_up_images()
    pixels = torch.from_numpy(np.stack(arrays)).permute(0, 3, 1, 2).float()
    return pixels / 128.0 - 1.0, f"{len(arrays)} {'decoded' if paths else 'made-up'} images"


def draw_batch(images, rng):
    labels = rng.integers(0, len(images), BATCH)
    tops = rng.integers(0, images.shape[2] - CROP, BATCH)
    lefts = rng.integers(0, images.shape[3] - CROP, BATCH)
    crops = [images[k, :, t : t + CROP, l : l + CROP] for k, t, l in zip(labels, tops, lefts)]
    return torch.stack(crops), torch.from_numpy(labels)


def make_net(classes):
    torch.manual_seed(7)
    return nn.Sequential(
        nn.Conv2d(3, 8, 5, stride=2), nn.ReLU(),
        nn.Conv2d(8, 16, 3, stride=2), nn.ReLU(),
        nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(64, classes),
    )  # fmt: skip


def choose_device():
    """One GPU for each local rank, or the CPU for all of them."""
    local_rank, local_size = int(os.environ["LOCAL_RANK"]), int(os.environ["LOCAL_WORLD_SIZE"])
    if torch.cuda.is_available() and torch.cuda.device_count() >= local_size:
        torch.cuda.set_device(local_rank)
        return torch.device("cuda", local_rank), "nccl"
    return torch.device("cpu"), "gloo"


def train(model, images, device, args):
    rank = dist.get_rank()
    rng = np.random.default_rng(1000 + rank)  # every rank sees crops of its own
    optimizer = torch.optim.SGD(model.parameters(), lr=args.learning_rate, momentum=0.9)
    losses = []
    for step in range(args.steps):
        if rank == args.fail_rank and step == args.fail_step:
            raise RuntimeError(f"rank {rank} fails before step {step}, as asked")
        crops, labels = draw_batch(images, rng)
        loss = nn.functional.cross_entropy(model(crops.to(device)), labels.to(device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def parameter_hash(model):
    digest = hashlib.sha256()
    for parameter in model.parameters():
        digest.update(parameter.detach().cpu().numpy().tobytes())
    return digest.hexdigest()[:16]


def main():
    args = parse_arguments()
    if "RANK" not in os.environ:
        sys.exit("ddp_train: RANK is not set; start it with: hvdrun -np 4 python tests/programs/ddp_train.py")
    torch.set_num_threads(1)
    device, backend = choose_device()
    dist.init_process_group(backend)  # env://: MASTER_ADDR, MASTER_PORT, RANK, WORLD_SIZE
    images, source = load_images()
    if dist.get_rank() == 0:
        print(f"training on {source} with {backend}, {args.steps} steps", flush=True)
    model = DistributedDataParallel(make_net(len(images)).to(device))
    losses = train(model, images, device, args)
    print(
        f"rank {dist.get_rank()} of {dist.get_world_size()} on {socket.gethostname()} "
        f"(local {os.environ['LOCAL_RANK']}) loss {losses[0]:.4f} -> {np.mean(losses[-5:]):.4f} "
        f"hash {parameter_hash(model)}",
        flush=True,
    )
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
