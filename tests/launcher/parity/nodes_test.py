"""Two agents on one machine under torchrun and under ddprun: their workers see the same.

nodes_test.py DDPRUN. Each rank of the two nodes writes down its environment; what may differ is
what may differ on one node (compare.py). Nodes have different numbers of workers where the order of
nodes is given.
"""

import json
import os
import pathlib
import sys
import tempfile

from both import LAUNCHERS, PROBE, environment
from cases import free_port
from compare import environment_differences

STATIC = ["--nnodes=2", "--master-addr=127.0.0.1", "--master-port={port}"]
C10D = ["--nnodes=1:2", "--rdzv-backend=c10d", "--rdzv-endpoint=localhost:{port}", "--rdzv-id=x"]
FILE = ["--rdzv-endpoint={dir}/store", "--rdzv-id=x", "--local-addr=127.0.0.1"]
LAST_CALL = "--rdzv-conf=last_call_timeout=600"

# name, what both nodes are given, what each is given beside it
CASES = [
    (
        "static",
        STATIC,
        [["--node-rank=0", "--nproc-per-node=1"], ["--node-rank=1", "--nproc-per-node=2"]],
    ),
    (
        "static, a range",
        ["--nnodes=1:2", *STATIC[1:]],
        [["--node-rank=0"], ["--node-rank=1"]],
    ),
    (
        "static, by variables",
        [],
        [
            {"PET_NNODES": "2", "PET_NODE_RANK": str(rank), "PET_MASTER_PORT": "{port}"}
            for rank in (0, 1)
        ],
    ),
    (
        "static, by endpoint, with roles",
        ["--nnodes=2", "--rdzv-endpoint=localhost:{port}", "--rdzv-id=job"],
        [["--node-rank=0", "--role=a"], ["--node-rank=1", "--role=b"]],
    ),
    ("c10d, elastic", [*C10D, LAST_CALL, "--nproc-per-node=2", "--max-restarts=3"], [[], []]),
    (
        "c10d, by a file",
        ["--nnodes=2", *C10D[1:2], "--rdzv-conf=store_type=file", *FILE],
        [[], []],
    ),
    ("c10d, not elastic", [C10D[1], C10D[2], "--nnodes=2", "--role="], [[], []]),
]


def start(launcher, words, extra, folder, port):
    words = [word.replace("{port}", port).replace("{dir}", str(folder)) for word in words]
    extra = {name: value.replace("{port}", port) for name, value in extra.items()}
    (folder / "console").touch()
    streams = [os.devnull, folder / "console", folder / "console"]
    return launcher([*words, PROBE], streams, folder, environment(extra, str(folder)))


def environments(launcher, common, nodes, port):
    """What each rank saw, and what went wrong."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        agents = []
        try:
            for node in nodes:
                given, extra = (node, {}) if isinstance(node, list) else ([], node)
                agents.append(start(launcher, [*common, *given], extra, folder, port))
            codes = [agent.wait(timeout=300) for agent in agents]
        finally:
            for agent in agents:
                agent.kill()
                agent.wait()
        if any(codes):
            return {}, f"exit codes {codes}: {(folder / 'console').read_text()[-2000:]}"
        seen = {
            int(path.name.split(".")[0]): json.loads(path.read_text())["environment"]
            for path in folder.glob("*.json")
        }
        return seen, None


def port_differences(seen, case, port):
    ports = {one["MASTER_PORT"] for one in seen.values()}
    if len(ports) != 1 or (ports == {port}) != case.startswith("static"):
        yield f"ports {ports}, endpoint {port}"


def judge(case, common, nodes):
    seen, port = {}, str(free_port())
    for name, launcher in LAUNCHERS.items():
        seen[name], wrong = environments(launcher, common, nodes, port)
        if wrong:
            yield f"{name}: {wrong}"
            return
        for difference in port_differences(seen[name], case, port):
            yield f"{name}: {difference}"
    theirs, ours = seen["torchrun"], seen["ddprun"]
    if sorted(theirs) != sorted(ours) or not ours:
        yield f"ranks: torchrun {sorted(theirs)}, ddprun {sorted(ours)}"
    for rank in sorted(set(theirs) & set(ours)):
        for difference in environment_differences(theirs[rank], ours[rank]):
            yield f"rank {rank}: {difference}"
        ids = [one[rank]["TORCHELASTIC_RUN_ID"] for one in (theirs, ours)]
        if ids[0] != ids[1]:
            yield f"rank {rank}: run ids {ids}"


def main():
    failed = 0
    for name, common, nodes in CASES:
        wrong = list(judge(name, common, nodes))
        print("ok  " if not wrong else "FAIL", name, flush=True)
        for one in wrong:
            print("      ", one)
        failed += bool(wrong)
    print(len(CASES), "cases,", failed, "failed")
    return 1 if failed else 0


if __name__ == "__main__":  # the copies of torchrun import this file
    sys.exit(main())
