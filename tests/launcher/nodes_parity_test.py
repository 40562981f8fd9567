"""--nnodes, --rdzv-endpoint and --rdzv-conf: what torchrun takes, ddprun takes, and the reverse.

torchrun's side are its own parsers and its own rendezvous handler, made in this process. The lines
are those of one node, so that ddprun waits for no other. Intentional differences are in DIFFERS
with the reason.
"""

import os
import subprocess
import sys

from torch.distributed.elastic.rendezvous import RendezvousParameters
from torch.distributed.elastic.rendezvous.registry import _register_default_handlers
from torch.distributed.elastic.rendezvous.registry import get_rendezvous_handler
from torch.distributed.elastic.rendezvous.utils import _parse_rendezvous_config
from torch.distributed.elastic.rendezvous.utils import parse_rendezvous_endpoint
from torch.distributed.run import config_from_args, parse_args

NODES = ["1", "1:1", " 1", "+1", "01", "1_", "0", "0:1", "-1", "2:1", "1:", ":1", "", "x", "1:2:3"]

ENDPOINTS = [
    "localhost",
    "localhost:29400",
    "localhost:0",
    "127.0.0.1",
    "127.0.0.1:7",
    "[::1]",
    "[::1]:7",
    "::1",
    "localhost:",
    "localhost:x",
    "localhost:65536",
    "localhost:123456",
    "localhost:-1",
    ":7",
    "a b",
    "a/b",
    "[::1",
    "[::1]x",
]

CONFS = [
    "",
    "join_timeout=5",
    " join_timeout = 5 , last_call_timeout=7",
    "join_timeout=0",
    "join_timeout=-1",
    "join_timeout=x",
    "join_timeout",
    "join_timeout=",
    "=5",
    "join_timeout=5,",
    "last_call_timeout=0",
    "close_timeout=5",
    "close_timeout=0",
    "heartbeat_timeout=5",
    "heartbeat_timeout=0",
    "read_timeout=5",
    "read_timeout=0",
    "keep_alive_interval=2",
    "keep_alive_interval=0",
    "keep_alive_max_attempt=2",
    "keep_alive_max_attempt=0",
    "keep_alive_max_attempt=x",
    "cas_backoff_max_seconds=0.5",
    "is_host=1",
    "is_host=True",
    "is_host=t",
    "is_host=yes",
    "is_host=y",
    "is_host=maybe",
    "store_type=tcp",
    "store_type=redis",
    "zap=1",
    "timeout=900",
    "join_timeout=10m",
    "join_timeout=1.5",
    "keep_alive_interval=100",
    "last_call_timeout=1e1",
    "backend=c10d",
    "run_id=x",
    "max_nodes=2",
]

DIFFERS = {
    ("conf", "join_timeout=10m"): "ddprun takes units",
    ("conf", "join_timeout=1.5"): "ddprun takes fractions",
    ("conf", "last_call_timeout=1e1"): "ddprun takes fractions",
    ("conf", "keep_alive_interval=0"): "torchrun would write its sign of life without a pause",
    ("conf", "keep_alive_max_attempt=0"): "torchrun would find every node dead",
}


def refuses(call):
    try:
        call()
    except Exception:  # every kind of complaint
        return True
    return False


def handler_of(conf):
    parameters = RendezvousParameters(
        backend="c10d",
        endpoint="localhost:0",
        run_id="parity",
        min_nodes=1,
        max_nodes=1,
        **{"is_host": "1", **_parse_rendezvous_config(conf)},
    )
    get_rendezvous_handler(parameters)


THEIRS = {
    "nodes": lambda text: config_from_args(parse_args(["--nnodes=" + text, "W"])),
    "endpoint": lambda text: parse_rendezvous_endpoint(text, 29400),
    "conf": handler_of,
}

OURS = {
    "nodes": lambda text: ["--rdzv-backend=c10d", "--nnodes=" + text],
    "endpoint": lambda text: ["--rdzv-backend=c10d", "--rdzv-endpoint=" + text],
    "conf": lambda text: [
        "--rdzv-backend=c10d",
        "--rdzv-endpoint=localhost:0",
        "--rdzv-conf=" + text,
    ],
}


def ours_refuses(words):
    run = subprocess.run(
        [sys.argv[1], *words, "true"], capture_output=True, text=True, timeout=60
    )
    if run.returncode not in (0, 2):
        raise AssertionError(f"{words}: code {run.returncode}: {run.stderr}")
    if run.returncode == 2 and len(run.stderr.splitlines()) != 1:
        raise AssertionError(f"{words}: not one line: {run.stderr}")
    return run.returncode == 2


def main():
    os.environ["CUDA_VISIBLE_DEVICES"] = ""
    _register_default_handlers()
    lines = [("nodes", text) for text in NODES]
    lines += [("endpoint", text) for text in ENDPOINTS]
    lines += [("conf", text) for text in CONFS]
    wrong, met = [], set()
    for kind, text in lines:
        theirs = refuses(lambda: THEIRS[kind](text))
        ours = ours_refuses(OURS[kind](text))
        if theirs == ours:
            continue
        if (kind, text) in DIFFERS:
            met.add((kind, text))
        else:
            wrong.append(f"{kind} {text!r}: torchrun refuses: {theirs}, ddprun: {ours}")
    wrong += [f"listed as different, but alike: {one}" for one in DIFFERS if one not in met]
    for line in wrong:
        print(line)
    print(len(lines), "lines,", len(met), "meant to differ,", len(wrong), "wrong")
    return 1 if wrong else 0


sys.exit(main())
