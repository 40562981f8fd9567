#!/usr/bin/env python3
"""A DDP training over Gloo starts warm after each SIGKILL, and computes what it computes cold.

    path/to/python/with/torch tests/warm/gloo_test.py path/to/ddprun
"""

import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.append(str(HERE.parent / "support"))
from eventually import eventually
from sentences import kFromTemplate

DDPRUN = ""
RESTARTS = int(os.environ.get("DDPRUN_TEST_REPEATS", "2"))
PRELOAD = "torch,torch.distributed,torch.nn.parallel,torch._dynamo,torch.optim"
LAST = "step 2"


class Training:
    def __init__(self, *options):
        self.folder = tempfile.TemporaryDirectory(prefix="ddprun-gloo-")
        self.phases = pathlib.Path(self.folder.name) / "phases"
        self.console = open(pathlib.Path(self.folder.name) / "console", "w+")
        environment = {**os.environ, "PYTHON_EXEC": sys.executable, "PHASES": str(self.phases),
                       "OMP_NUM_THREADS": "1"}
        self.process = subprocess.Popen(
            [DDPRUN, "--nproc-per-node=2", f"--max-restarts={RESTARTS}", *options,
             str(HERE / "gloo_worker.py")],
            env=environment, stdin=subprocess.DEVNULL, stdout=self.console, stderr=self.console)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.console.close()
        self.folder.cleanup()

    def rows(self):
        text = self.phases.read_text() if self.phases.exists() else ""
        return [line.split(" ", 4) for line in text.splitlines()]

    def wait_for_steps(self, restarts):
        """{rank: (pid, losses)} of that round, when both ranks have finished its last step."""
        def told():
            rows = [row for row in self.rows() if int(row[1]) == restarts]
            return len({row[2] for row in rows if row[4].startswith(LAST)}) == 2
        assert any(eventually(told) for _ in range(4)), self.text()
        rows = [row for row in self.rows() if int(row[1]) == restarts]
        return {row[2]: (int(row[3]), [other[4] for other in rows if other[2] == row[2]
                                       and other[4].startswith("step")]) for row in rows}

    def text(self):
        self.console.flush()
        return pathlib.Path(self.console.name).read_text()


class Gloo(unittest.TestCase):
    def test_restarts(self):
        with Training("--warm=first", "--preload", PRELOAD) as warm:
            first = warm.wait_for_steps(0)
            for restarts in range(1, RESTARTS + 1):
                os.kill(warm.wait_for_steps(restarts - 1)["1"][0], signal.SIGKILL)
                again = warm.wait_for_steps(restarts)
                self.assertEqual([again[rank][1] for rank in "01"],
                                 [first[rank][1] for rank in "01"])
            all_warm = "all 2 ranks" + kFromTemplate
            self.assertTrue(eventually(lambda: warm.text().count(all_warm) == RESTARTS + 1),
                            warm.text())
            pathlib.Path(str(warm.phases) + ".end").touch()
            self.assertEqual(warm.process.wait(60), 0, warm.text())
        with Training() as cold:
            self.assertEqual({rank: told[1] for rank, told in cold.wait_for_steps(0).items()},
                             {rank: told[1] for rank, told in first.items()})


if __name__ == "__main__":
    DDPRUN = os.path.abspath(sys.argv.pop(1))
    unittest.main()
