"""The peer: the same ResNet-18 and recipe in idiomatic Python with DistributedDataParallel.

It trains on one fixed batch: without loading and augmentation it does less work than the trainer.
"""

import argparse
import os
import pathlib
import sys
import time

import torch
import torch.distributed as dist
import torch.nn.functional as F

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "tests/trainer/torch"))
from resnet18 import ResNet18  # noqa: E402


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--batch-size", type=int, default=128, help="global")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--amp", choices=["on", "off"], default="off")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--log-every", type=int, default=1)
    return parser.parse_args()


def main():
    flags = arguments()
    device = torch.device("cpu")
    if flags.device == "cuda":
        device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
        torch.cuda.set_device(device)
        torch.backends.cudnn.benchmark = True
    dist.init_process_group("nccl" if flags.device == "cuda" else "gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    model = ResNet18(flags.width).to(device, memory_format=torch.channels_last)
    parallel = torch.nn.parallel.DistributedDataParallel(model, gradient_as_bucket_view=True)
    optimizer = torch.optim.SGD(
        model.parameters(), 0.01, momentum=0.9, weight_decay=5e-4, nesterov=True
    )
    local = flags.batch_size // world
    x = torch.randn(local, 3, 32, 32).to(device, memory_format=torch.channels_last)
    y = torch.randint(0, 10, (local,)).to(device)
    marked = time.monotonic()
    for step in range(1, flags.steps + 1):
        with torch.autocast(flags.device, torch.bfloat16, enabled=flags.amp == "on"):
            loss = F.cross_entropy(parallel(x), y, label_smoothing=0.1)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if step % flags.log_every == 0:
            mean = loss.item()
            if rank == 0:
                now = time.monotonic()
                speed = flags.batch_size * flags.log_every / (now - marked)
                line = f"train step {step}/{flags.steps} loss {mean:.4f} {speed:.0f} img/s"
                print(line, flush=True)
                marked = now
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
