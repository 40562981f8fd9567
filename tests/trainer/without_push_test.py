#!/usr/bin/env python3
"""Why a round is pushed to ranks that are kept, and shuts the sockets of their group: the Python
example without that takes no step after a rank was killed, with it it does.

without_push_test.py DDPRUN MODULE [SECONDS]
"""

import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import threading

import torch.distributed as dist

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tests/support"))
from eventually import eventually  # noqa: E402

DDPRUN, MODULE = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
SECONDS = float(sys.argv[3]) if len(sys.argv) > 3 else 20
SKIPPED = 77
# As torch 2.15 alone: reconfigure() of a new group, and no way to leave the old one.
WITHOUT_PUSH = """import contextlib, ddprun, ddprun._reconfigure
ddprun._reconfigure.group_sockets = contextlib.nullcontext
ddprun.abandon_sockets = lambda: 0
"""
TELLS = "import os; os.write(1, b'pid %d\\n' % os.getpid())\n"  # in one piece


def steps_after_a_kill(before):
    """Whether ranks of the example take a step in round 2 within SECONDS."""
    with tempfile.TemporaryDirectory(prefix="ddprun_push_") as folder:
        script = pathlib.Path(folder) / "elastic_ddp.py"
        text = (ROOT / "examples/elastic/elastic_ddp.py").read_text()
        text = text.replace("= 300,", "= 1000000,")
        text = text.replace("torch.manual_seed(0)", TELLS + "torch.manual_seed(0)", 1)
        script.write_text(before + text)
        process = subprocess.Popen(
            [DDPRUN, "--restart=failed", "--max-restarts=9", "--nproc-per-node=4", script],
            env={**os.environ, "PYTHONPATH": MODULE, "PYTHON_EXEC": sys.executable,
                 "OMP_NUM_THREADS": "1"}, stdout=subprocess.PIPE, text=True)
        lines, stepped = [], threading.Event()

        def read():
            for line in process.stdout:
                if re.match("(pid|step [1-9] )", line):
                    lines.append(line)
                if re.match("step .* of round 2 on 4 ranks", line):
                    stepped.set()

        reader = threading.Thread(target=read)
        reader.start()
        try:
            assert eventually(lambda: any(line.startswith("step 2 ") for line in lines)), lines
            victim = next(int(line.split()[1]) for line in lines if line.startswith("pid"))
            os.kill(victim, signal.SIGKILL)
            assert eventually(lambda: sum(line.startswith("pid") for line in lines) == 5), lines
            return stepped.wait(SECONDS)  # the new rank has imported torch
        finally:
            process.terminate()
            process.wait()
            reader.join()


def main():
    assert not steps_after_a_kill(WITHOUT_PUSH), "torch frees ranks by itself now"
    assert steps_after_a_kill("")
    print(f"without the push no step in {SECONDS:.0f} s, with it one")


if __name__ == "__main__":
    if not hasattr(dist.distributed_c10d, "ReconfigureOptions"):
        print("skipped: this torch has no reconfigure")
        sys.exit(SKIPPED)
    main()
