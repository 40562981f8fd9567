"""The DDP script that most labs have: --local_rank, a model directory, --resume.

    ddprun --standalone --nproc-per-node 2 examples/resnet/resnet_ddp.py --num_epochs 4
    ddprun --standalone --nproc-per-node 2 examples/resnet/resnet_ddp.py --num_epochs 8 --resume
"""

import argparse
import os

import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


class Block(nn.Module):
    def __init__(self, before, after, stride):
        super().__init__()
        self.path = nn.Sequential(
            nn.Conv2d(before, after, 3, stride, padding=1, bias=False), nn.BatchNorm2d(after),
            nn.ReLU(), nn.Conv2d(after, after, 3, padding=1, bias=False), nn.BatchNorm2d(after))
        self.shortcut = nn.Conv2d(before, after, 1, stride, bias=False)

    def forward(self, x):
        return torch.relu(self.path(x) + self.shortcut(x))


def resnet():
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8), nn.ReLU(),
        Block(8, 8, 1), Block(8, 16, 2), Block(16, 32, 2),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 10))


def pictures():
    generator = torch.Generator().manual_seed(0)
    of_classes = torch.randn(10, 3, 32, 32, generator=generator)
    labels = torch.randint(10, (640,), generator=generator)
    noise = torch.randn(640, 3, 32, 32, generator=generator)
    return TensorDataset(of_classes[labels] + noise, labels)


def main():
    parser = argparse.ArgumentParser()
    # torch.distributed.launch passes the argument, torchrun and ddprun set the variable.
    parser.add_argument("--local_rank", "--local-rank", type=int,
                        default=int(os.environ.get("LOCAL_RANK", 0)))
    parser.add_argument("--num_epochs", type=int, default=4)
    parser.add_argument("--batch_size", type=int, default=32, help="of one process")
    parser.add_argument("--learning_rate", type=float, default=0.05)
    parser.add_argument("--random_seed", type=int, default=0)
    parser.add_argument("--model_dir", default="saved_models")
    parser.add_argument("--model_filename", default="resnet_distributed.pth")
    parser.add_argument("--resume", action="store_true", help="from the model directory")
    argv = parser.parse_args()

    torch.manual_seed(argv.random_seed)
    if torch.cuda.is_available():
        device = torch.device("cuda", argv.local_rank)
        torch.cuda.set_device(device)
        torch.distributed.init_process_group("nccl")
    else:
        device = torch.device("cpu")
        torch.distributed.init_process_group("gloo")
    is_first = torch.distributed.get_rank() == 0
    path = os.path.join(argv.model_dir, argv.model_filename)
    if is_first:
        os.makedirs(argv.model_dir, exist_ok=True)

    model = DistributedDataParallel(resnet().to(device))
    optimizer = torch.optim.SGD(model.parameters(), argv.learning_rate, momentum=0.9)
    begin = 0
    if argv.resume and os.path.exists(path):
        saved = torch.load(path, map_location=device, weights_only=True)
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        begin = saved["epoch"] + 1
        if is_first:
            print(f"resumed at epoch {begin}", flush=True)

    dataset = pictures()
    sampler = DistributedSampler(dataset, seed=argv.random_seed)
    loader = DataLoader(dataset, argv.batch_size, sampler=sampler)
    criterion = nn.CrossEntropyLoss()
    for epoch in range(begin, argv.num_epochs):
        sampler.set_epoch(epoch)
        model.train()
        for inputs, labels in loader:
            optimizer.zero_grad()
            loss = criterion(model(inputs.to(device)), labels.to(device))
            loss.backward()
            optimizer.step()
        if is_first:
            print(f"epoch {epoch}: loss of the last step {loss.item():.6f}", flush=True)
            saved = {"epoch": epoch, "model": model.state_dict(),
                     "optimizer": optimizer.state_dict()}
            torch.save(saved, path + ".new")
            os.replace(path + ".new", path)  # a process that is killed leaves the old one
    # The threads of a group that DDP has used outlive destroy_process_group(), and may hold the
    # tensor of their last collective still as Python exits, which aborts the process.
    torch.distributed.barrier(group=torch.distributed.new_group())
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
