"""Torch's own libuv store server, alone in a process: prints "ready PORT", ends when stdin does."""

import sys
from datetime import timedelta

from torch.distributed import TCPStore

store = TCPStore(
    "127.0.0.1",
    0,
    world_size=None,
    is_master=True,
    timeout=timedelta(seconds=60),
    wait_for_workers=False,
    use_libuv=True,
)
print("ready", store.port, flush=True)
sys.stdin.read()
