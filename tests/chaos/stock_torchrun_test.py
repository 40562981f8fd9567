"""Two unmodified torchrun agents rendezvous through ddprun-rdzvd and train with Gloo.

    stock_torchrun_test.py PATH_TO_RDZVD

torchrun is the one beside this Python. Each row is a run: workers per node, what torchrun is told
about hosting, and whether its workers share the agents' store.
"""

import os
import pathlib
import sys
import types

from harness import HERE, Cluster, Failed

TORCHRUN = pathlib.Path(sys.executable).with_name("torchrun")
SECONDS = 120
# With is_host=false torchrun never tries to serve; otherwise it finds the port in use and joins.
ROWS = [
    ("one worker per node, told not to host", 1, "is_host=false", "0"),
    ("two workers per node, told not to host", 2, "is_host=false", "0"),
    ("one worker per node, told nothing", 1, "", "0"),
    ("one worker per node, rank 0's worker serves its own store", 1, "is_host=false", "1"),
]


def main() -> int:
    try:
        import torch
    except ImportError as error:
        print(f"skipped: this Python has no torch ({error})")
        return 77
    if not os.access(TORCHRUN, os.X_OK):
        print(f"skipped: no {TORCHRUN}")
        return 77
    failed = 0
    for sentence, workers, conf, apart in ROWS:
        try:
            meet(workers, conf, apart)
            print(f"torchrun {torch.__version__}: {sentence}: met, all exit 0", flush=True)
        except Failed as found:
            failed += 1
            print(f"FAILED torchrun {torch.__version__}: {sentence}\n{found}", flush=True)
    return 1 if failed else 0


def meet(workers: int, conf: str, apart: str) -> None:
    tools = types.SimpleNamespace(launcher=[str(TORCHRUN)], rdzvd=sys.argv[1],
                                  program_words=["--no-python"])
    with Cluster(tools, 1) as cluster:
        cluster.flags |= {"nnodes": "2", "nproc-per-node": str(workers),
                          "local-addr": "127.0.0.1", "shutdown-timeout": "None"}
        cluster.flags["rdzv-conf"] = conf or "None"
        cluster.environment |= {"OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo",
                                "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": apart}
        cluster.worker = [sys.executable, "-u", str(HERE / "gloo_worker.py")]
        cluster.start_daemon()
        agents = cluster.start_many(2)
        one = cluster.wait_for_round(agents, seconds=SECONDS)
        if sorted(one.pids) != list(range(2 * workers)):
            raise Failed(f"ranks {sorted(one.pids)}")
        cluster.finish()
        cluster.end_all(0, seconds=SECONDS)


if __name__ == "__main__":
    sys.exit(main())
