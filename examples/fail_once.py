"""A worker that fails once: shows a restart, and what the report quotes.

    ddprun --standalone --nproc-per-node 2 --max-restarts 1 examples/fail_once.py
"""

import os

rank, restarts = os.environ["RANK"], int(os.environ["TORCHELASTIC_RESTART_COUNT"])
print(f"rank {rank}: try number {restarts + 1}")
if rank == "1" and restarts == 0:
    raise ValueError("the first try always fails")
