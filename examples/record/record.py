"""An error that torch's recorder writes down: rank 1 fails, and the report has its exception.

    ddprun --standalone --nproc-per-node 2 examples/record/record.py
"""

import os
import signal

from torch.distributed.elastic.multiprocessing.errors import record


def read_batch(rank):
    if rank == 1:
        raise ValueError(f"rank {rank}: batch 17 has no labels")
    signal.pause()  # the launcher stops this rank because the other one failed


@record
def main():
    read_batch(int(os.environ["RANK"]))


if __name__ == "__main__":
    main()
