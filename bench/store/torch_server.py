"""Torch's libuv store server in its own process: prints "ready PORT", exits at the end of stdin."""

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
