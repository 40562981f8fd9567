"""A Gloo worker: all_reduce in every step; each rank connects to the store after a random delay.

Exit codes of its own: 7 could not connect, 8 a wrong sum, 9 a peer was lost.
"""

import datetime
import os
import random
import sys
import threading

from notes import Notebook

LATE = float(os.environ.get("CHAOS_LATE", "0.5"))
CONTINUE = -1
STEP_SECONDS = 0.02


def main() -> int:
    notebook = Notebook()
    notebook.write()
    import torch
    import torch.distributed as dist
    threading.Event().wait(random.uniform(0, LATE))
    try:
        dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=60))
        world = dist.get_world_size()
        token = [f"{os.getpid()}@{notebook.facts['began']}"]
        dist.broadcast_object_list(token, src=0)
    except Exception as error:
        print(f"rank {os.environ['RANK']}: {type(error).__name__}: {error}", file=sys.stderr)
        return 7
    met = False
    while True:
        order = notebook.order()
        votes = torch.tensor([1, 0 if order is None else 1], dtype=torch.int64)
        try:
            dist.all_reduce(votes)
        except Exception as error:
            print(f"rank {os.environ['RANK']}: lost a peer: {error}", file=sys.stderr)
            return 9
        if votes[0] != world:
            return 8
        if not met:
            notebook.write(met=world, token=token[0])
            met = True
        if order:
            return order
        if votes[1] == world:  # all ranks have seen the request to finish
            dist.destroy_process_group()
            return 0
        threading.Event().wait(STEP_SECONDS)


if __name__ == "__main__":
    sys.exit(main())
