"""A worker of grow_test.py: its group ends with an error when another round comes.

usage: growing.py FOLDER
Writes FOLDER/<pid>, a line for each step: round, world size, step, cause of the round. Ends with 0
when FOLDER/done exists, or, if FOLDER/last does, when its group ends: that step was the last.
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


def of_all(number):
    value = torch.tensor([number])
    dist.all_reduce(value, op=dist.ReduceOp.MAX)
    return value.item()


def steps_in(world, step):
    """The numbers of the steps that all ranks of the world do, until all is done."""
    ddprun.reconfigure(world)
    step = of_all(step)
    while not of_all((folder / "done").exists()):
        if ddprun.round_pending():  # one that is alone has no socket that ends
            raise RuntimeError("another round has come")
        step += 1
        yield step
        never.wait(STEP_S)


ddprun.survive()
last, finished = 0, False
with open(folder / str(os.getpid()), "w", buffering=1, encoding="utf-8") as all_steps:
    while not finished:
        its_world = ddprun.next_round(timeout=60)
        assert its_world, "no round came"
        try:
            for last in steps_in(its_world, last):
                print(its_world.round, its_world.world_size, last, its_world.cause, file=all_steps)
                ddprun.step_done(last)
            finished = True
        except RuntimeError as error:
            print("left the round:", error, file=sys.stderr)
            finished = (folder / "last").exists()
dist.destroy_process_group()
