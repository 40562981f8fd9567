"""A worker of grow_test.py: all ranks leave a round that grows at one step, without an error, and
one in which a rank is lost with an error.

usage: growing.py FOLDER
Writes FOLDER/<pid>, a line for each step: round, world size, step, cause of the round, what is
pending. Ends with 0 when FOLDER/done exists, or with FOLDER/last, when a round is pending: that
step was the last.
"""
import os
import pathlib
import sys
import threading

import ddprun
import torch
from torch import distributed as dist

folder = pathlib.Path(sys.argv[1])
STEP_S = 0.02  # a step of a training takes time
never = threading.Event()


def of_all(*numbers):
    values = torch.tensor(numbers)
    dist.all_reduce(values, op=dist.ReduceOp.MAX)
    return values.tolist()


def train(world, step, steps):
    """The last step, and whether all is done."""
    ddprun.reconfigure(world)
    (step,) = of_all(step)
    pending = is_done = 0
    while not pending and not is_done:
        pending, is_done, is_last = of_all(ddprun.round_pending(), (folder / "done").exists(),
                                           (folder / "last").exists())
        is_done = is_done or (pending and is_last)
        step += 1
        never.wait(STEP_S)
        print(world.round, world.world_size, step, world.cause, pending, file=steps)
        ddprun.step_done(step)
    return step, is_done


ddprun.survive()
last, finished = 0, False
with open(folder / str(os.getpid()), "w", buffering=1, encoding="utf-8") as all_steps:
    while not finished:
        its_world = ddprun.next_round(timeout=60)
        assert its_world, "no round came"
        try:
            last, finished = train(its_world, last, all_steps)
        except RuntimeError as error:
            print("left the round:", error, file=sys.stderr)
