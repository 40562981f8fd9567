"""Ranks that survive the loss of another one train on: plain PyTorch (2.15 or later) DDP.
PYTHONPATH has to name the module ddprun: build/dev/python, or PREFIX/lib/ddprun/python.
ddprun --restart=failed --max-restarts=9 --nproc-per-node=4 examples/elastic/elastic_ddp.py"""

import zlib

import ddprun
import torch
from torch import distributed as dist

STEPS, BATCH, SAMPLES = 300, 96, 4096  # BATCH is that of all ranks, in every world
torch.manual_seed(0)  # a new process starts with the state that every rank had at step 0
inputs, labels = torch.randn(SAMPLES, 32), torch.randint(0, 10, (SAMPLES,))
model = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.ReLU(), torch.nn.Linear(64, 10))
loss_of = torch.nn.CrossEntropyLoss(reduction="sum")
optimizer, step = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9), 0


def samples_of(step, world):
    """The step alone determines the batch, so none is lost or used twice."""
    batch = torch.randint(SAMPLES, (BATCH,), generator=torch.Generator().manual_seed(step))
    return batch.tensor_split(world.world_size)[world.rank]


def of_all_ranks(number, world):
    dist.all_gather_object(gathered := [None] * world.world_size, number)
    return gathered


def digest():
    tensors = [*model.parameters(), *(s["momentum_buffer"] for s in optimizer.state.values())]
    return zlib.crc32(b"".join(tensor.detach().numpy() for tensor in tensors))


def take_state(world):
    """All ranks take everything from the one that is ahead: by a step, if at all."""
    global step
    steps = of_all_ranks(step, world)
    state = [step, model.state_dict(), optimizer.state_dict()]
    dist.broadcast_object_list(state, src=steps.index(max(steps)))
    step = state[0]
    model.load_state_dict(state[1])
    optimizer.load_state_dict(state[2])
    assert len(set(of_all_ranks(digest(), world))) == 1, "the ranks hold different weights"


def train(world):
    """Returns the next round; None: that was the end. RuntimeError: a rank is gone, or a bug."""
    global step
    take_state(world)
    parallel = torch.nn.parallel.DistributedDataParallel(model)  # new: buckets are of one round
    # Not used. From the second pass on DDP keeps its buckets: sums of all rounds have equal bits.
    loss_of(parallel(inputs[:1]), labels[:1]).backward()
    while step < STEPS and not any(of_all_ranks(ddprun.round_pending(), world)):
        batch = samples_of(step, world)
        optimizer.zero_grad()
        loss = loss_of(parallel(inputs[batch]), labels[batch]) / BATCH
        (loss * world.world_size).backward()  # DDP averages over ranks
        optimizer.step()
        step += 1
        print(f"step {step} of round {world.round} on {world.world_size} ranks", flush=True)
    if step < STEPS:
        return ddprun.next_round()
    return dist.barrier()  # None; ranks that are done help those that have lost one


ddprun.survive()
world = ddprun.next_round()
while world:
    try:
        ddprun.reconfigure(world)
        world = train(world)
    except RuntimeError as error:
        print(f"left round {world.round} at step {step}: {str(error).splitlines()[0]}", flush=True)
        ddprun.abandon_sockets()  # frees the ranks that wait for this one
        if not (world := ddprun.next_round(timeout=600)):
            raise  # no rank is gone: it is a bug
print(f"done: step {step}, weights {digest():08x}")
dist.destroy_process_group()
