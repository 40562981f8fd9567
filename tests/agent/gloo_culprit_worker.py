"""A Gloo worker of which rank 1 does what MODE says, while the others continue with all_reduce."""

import datetime
import os
import select
import signal
import sys

import torch
import torch.distributed as dist

RANK = int(os.environ["RANK"])
MODE = sys.argv[1]
LIMIT = datetime.timedelta(seconds=5)


def misbehave() -> None:
    if MODE == "stopped":
        os.kill(os.getpid(), signal.SIGSTOP)
    elif MODE == "asleep":
        signal.pause()
    elif MODE == "exit0":
        os._exit(0)
    elif MODE == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    elif MODE == "raises":
        raise KeyError("labels")
    elif MODE == "behind":
        dist.barrier()
    elif MODE == "barrier":
        signal.pause()


def main() -> None:
    if MODE == "missing" and RANK == 1:
        signal.pause()
    dist.init_process_group("gloo", timeout=LIMIT if MODE == "missing" else LIMIT * 12)
    work = dist.new_group(timeout=LIMIT)
    total = torch.ones(4)
    dist.all_reduce(total, group=work)
    if RANK == 1:
        misbehave()
    if MODE == "barrier":
        dist.monitored_barrier(timeout=LIMIT)
    if MODE == "slow" and RANK == 1:
        select.select([], [], [], 2.0)
    dist.all_reduce(total, group=work)
    if MODE == "slow":
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
