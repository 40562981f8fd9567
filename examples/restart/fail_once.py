"""A worker that fails once, to demonstrate a restart and the quotes in the report.

    ddprun --standalone --nproc-per-node 2 --max-restarts 1 examples/restart/fail_once.py
"""

import os

rank, restarts = os.environ["RANK"], int(os.environ["TORCHELASTIC_RESTART_COUNT"])
print(f"rank {rank}: attempt {restarts + 1}")
if rank == "1" and restarts == 0:
    raise ValueError("the first attempt always fails")
