"""DistributedDataParallel on CIFAR-10: one process per device, each with its share of the pictures.

    scripts/get-cifar10 data
    ddprun --standalone --nproc-per-node 2 examples/cifar/cifar.py train --data data
    ddprun --standalone --nproc-per-node 2 examples/cifar/cifar.py test --data data
"""

import argparse
import os
import pathlib

import torch
from torch import distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, Subset, TensorDataset

RECORD = 1 + 3 * 32 * 32  # bytes: the label, then red, green and blue
TRAIN = [f"data_batch_{i}.bin" for i in range(1, 6)]


def read_pictures(folder, names):
    """The official binary layout. Without a folder: synthetic pictures, for a first try."""
    if folder is None:
        generator = torch.Generator().manual_seed(0)
        of_classes = torch.randn(10, 3, 32, 32, generator=generator)
        labels = torch.randint(10, (2000,), generator=generator)
        noise = torch.randn(2000, 3, 32, 32, generator=generator)
        return TensorDataset(of_classes[labels] + noise, labels)
    files = [folder / "cifar-10-batches-bin" / name for name in names]
    records = torch.cat([torch.frombuffer(bytearray(file.read_bytes()), dtype=torch.uint8)
                         for file in files]).reshape(-1, RECORD)
    pictures = records[:, 1:].reshape(-1, 3, 32, 32).float() / 127.5 - 1
    return TensorDataset(pictures, records[:, 0].long())


def small_network():
    return nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(32 * 8 * 8, 64), nn.ReLU(), nn.Linear(64, 10))


def train(options, device):
    torch.manual_seed(options.seed)  # the same weights on every rank
    pictures = read_pictures(options.data, TRAIN)
    sampler = DistributedSampler(pictures, seed=options.seed)  # each rank has its part
    loader = DataLoader(pictures, batch_size=options.batch, sampler=sampler)
    model = DistributedDataParallel(small_network().to(device))
    optimizer = torch.optim.SGD(model.parameters(), lr=options.rate, momentum=0.9)
    # destroy_process_group() does not end the threads of a group that DDP has used: as Python
    # exits, they may still hold the tensor of their last collective, and then the process aborts.
    sums = dist.new_group()
    for epoch in range(options.epochs):
        sampler.set_epoch(epoch)  # else every epoch has the same order
        total = torch.zeros(2, device=device)
        for images, labels in loader:
            loss = nn.functional.cross_entropy(model(images.to(device)), labels.to(device))
            optimizer.zero_grad()
            loss.backward()  # averages the gradients over all ranks
            optimizer.step()
            total += torch.tensor([loss.item() * len(labels), len(labels)], device=device)
        dist.all_reduce(total, group=sums)
        if dist.get_rank() == 0:
            print(f"epoch {epoch}: loss {total[0] / total[1]:.4f}", flush=True)
    if dist.get_rank() == 0:
        torch.save(model.module.state_dict(), options.model)
        print(f"wrote {options.model.name}", flush=True)


def test(options, device):
    model = small_network().to(device).eval()
    model.load_state_dict(torch.load(options.model, map_location=device, weights_only=True))
    pictures = read_pictures(options.data, ["test_batch.bin"])
    mine = range(dist.get_rank(), len(pictures), dist.get_world_size())  # each picture once
    right = torch.zeros(1, dtype=torch.int64, device=device)
    with torch.no_grad():
        for images, labels in DataLoader(Subset(pictures, mine), batch_size=500):
            right += (model(images.to(device)).argmax(1) == labels.to(device)).sum()
    dist.all_reduce(right)
    if dist.get_rank() == 0:
        print(f"accuracy {100 * right.item() / len(pictures):.2f} %", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("command", choices=("train", "test"))
    parser.add_argument("--data", type=pathlib.Path, help="the folder of scripts/get-cifar10")
    parser.add_argument("--model", type=pathlib.Path, default=pathlib.Path("cifar.pt"))
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--batch", type=int, default=64, help="pictures per rank and step")
    parser.add_argument("--rate", type=float, default=0.02)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    device = torch.device("cpu")
    if torch.cuda.is_available():
        device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
        torch.cuda.set_device(device)
    dist.init_process_group("nccl" if device.type == "cuda" else "gloo")  # env://
    {"train": train, "test": test}[options.command](options, device)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
