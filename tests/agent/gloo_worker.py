"""A Gloo worker whose rank 1 comes to every round but the first one second after rank 0.

After the all_reduce of a round it says so; while restarts are left, rank 0 then fails, so that a
next round follows. Exit codes: 0 the last round connected, 3 wanted failure, 7 could not connect.
"""

import datetime
import os
import select
import sys

import torch
import torch.distributed as dist

RANK = int(os.environ["RANK"])
COUNT = int(os.environ["TORCHELASTIC_RESTART_COUNT"])
LAST = int(os.environ["TORCHELASTIC_MAX_RESTARTS"])


def main() -> int:
    if RANK == 1 and COUNT > 0:
        select.select([], [], [], 1.0)
    try:
        dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=20))
        total = torch.ones(1)
        dist.all_reduce(total)
    except Exception as error:
        print(f"round {COUNT + 1} rank {RANK}: {type(error).__name__}: {error}", file=sys.stderr)
        return 7
    if total.item() != 2:
        return 7
    print(f"connected: round {COUNT + 1} rank {RANK}", flush=True)
    if COUNT == LAST:
        dist.destroy_process_group()
        return 0
    if RANK == 0:
        os._exit(3)
    select.select([], [], [])  # until the launcher ends it
    return 0


if __name__ == "__main__":
    sys.exit(main())
