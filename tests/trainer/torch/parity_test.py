"""The C++ trainer's DDP computes the same as Python's: 5 Nesterov steps on 2 ranks, bit for bit.

Also: the same seed draws the same weights as torch.manual_seed, and a short last batch is weighted
by samples.
"""

import sys

import torch

import harness
from resnet18 import ResNet18

STEPS, PER_RANK, WORLD, WIDTH = 5, 32, 2, 16


def python_rank(folder):
    import os

    import numpy
    import torch.distributed as dist

    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.set_num_threads(1)
    torch.manual_seed(3 + rank)
    model = ResNet18(WIDTH)
    shape = (STEPS, WORLD, PER_RANK)
    x = torch.from_numpy(numpy.fromfile(f"{folder}/x.bin", numpy.float32)).view(*shape, 3, 32, 32)
    y = torch.from_numpy(numpy.fromfile(f"{folder}/y.bin", numpy.int64)).view(*shape)
    parallel = torch.nn.parallel.DistributedDataParallel(model, gradient_as_bucket_view=True)
    optimizer = torch.optim.SGD(
        model.parameters(), 0.05, momentum=0.9, weight_decay=5e-4, nesterov=True
    )
    for step in range(STEPS):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(parallel(x[step][rank]), y[step][rank])
        loss.backward()
        optimizer.step()
        if rank == 0:
            print("loss %.9g" % loss.item())
    torch.save(model.state_dict(), f"{folder}/python_{os.environ['RANK']}.pt")
    dist.barrier()
    dist.destroy_process_group()


def largest_difference(folder, rank):
    ours = torch.load(f"{folder}/cpp_train_{rank}.pt")
    theirs = torch.load(f"{folder}/python_{rank}.pt")
    assert set(ours) == set(theirs), set(ours) ^ set(theirs)
    return max((ours[name].double() - theirs[name].double()).abs().max().item() for name in ours)


def check_uneven(folder, x, y):
    torch.manual_seed(3)
    model = ResNet18(WIDTH).eval()
    torch.nn.functional.cross_entropy(model(x[0][0][:5]), y[0][0][:5]).backward()
    for rank in range(WORLD):
        ours = torch.load(f"{folder}/cpp_uneven_{rank}.pt")
        for name, parameter in model.named_parameters():
            torch.testing.assert_close(ours[name], parameter.grad, rtol=1e-4, atol=1e-6)


def main():
    folder = harness.folder()
    torch.manual_seed(11)
    shape = (STEPS, WORLD, PER_RANK)
    x, y = torch.randn(*shape, 3, 32, 32), torch.randint(0, 10, shape)
    x.numpy().tofile(folder / "x.bin")
    y.numpy().tofile(folder / "y.bin")
    steps = harness.program("DDP_STEPS")
    ours = harness.run_ranks(WORLD, [steps, folder, WIDTH, "train"])
    theirs = harness.run_ranks(WORLD, [sys.executable, __file__, "rank", folder])
    print(ours)
    assert ours == theirs, f"losses differ:\n{ours}\n{theirs}"
    differences = [largest_difference(folder, rank) for rank in range(WORLD)]
    print("largest difference per rank:", differences)
    assert differences == [0.0, 0.0]
    harness.run_ranks(WORLD, [steps, folder, WIDTH, "uneven"])
    check_uneven(folder, x, y)


if __name__ == "__main__":
    python_rank(sys.argv[2]) if len(sys.argv) > 1 else main()
