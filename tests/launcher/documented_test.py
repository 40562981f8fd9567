"""What README.md and docs/TORCHRUN.md show happens, with the programs and command lines they name.

    documented_test.py path/to/ddprun path/to/ddprun-rdzvd
"""

import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent
sys.path.append(str(HERE.parent / "support"))
from ports import free_port  # noqa: E402
from sentences import kSenderUnknown, kTracebackIsAbove  # noqa: E402
from supervisors import supervisors_of  # noqa: E402

DDPRUN = RDZVD = ""
COUNT = str(HERE.parents[1] / "examples/shell/count.sh")
FAIL_ONCE = str(HERE.parents[1] / "examples/restart/fail_once.py")
HUNG = 30  # seconds
FOREIGN = ("PET_", "TORCHELASTIC_", "DDPRUN_", "SLURM_", "OMPI_", "PMI_", "RANK", "LOCAL_RANK",
           "WORLD_SIZE", "MASTER_", "OMP_NUM_THREADS")
ENVIRONMENT = {key: value for key, value in os.environ.items() if not key.startswith(FOREIGN)}


class Running:
    """One ddprun in the background; its stdout and stderr are one console."""

    def __init__(self, *words, folder):
        self.console = pathlib.Path(tempfile.mkstemp(dir=folder)[1])
        with open(self.console, "wb") as console:
            self.process = subprocess.Popen([DDPRUN, *words], stdin=subprocess.DEVNULL,
                                            stdout=console, stderr=console, env=ENVIRONMENT)

    def text(self):
        return self.console.read_text(errors="replace")

    def until(self, pattern, count=1):
        deadline = time.monotonic() + HUNG
        while len(found := re.findall(pattern, self.text())) < count:
            if time.monotonic() > deadline:
                raise AssertionError(f"no {pattern!r} within {HUNG} s in:\n{self.text()}")
            threading.Event().wait(0.01)
        return found

    def end(self, number=None):
        if number:
            self.process.send_signal(number)
        return self.process.wait(HUNG)


def run(*words, **environment):
    return subprocess.run([DDPRUN, *words], capture_output=True, text=True, timeout=HUNG,
                          stdin=subprocess.DEVNULL, env={**ENVIRONMENT, **environment})


class Documented(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def start(self, *words):
        running = Running(*words, folder=self.folder)
        self.addCleanup(running.process.wait)
        self.addCleanup(running.process.kill)
        return running

    def test_ten_minutes_kill_one_and_press_ctrl_c(self):
        count = self.start("--standalone", "--nproc-per-node", "2", "--max-restarts", "3", COUNT)
        pids = dict(count.until(r"rank (\d) of 2, restart 0, pid (\d+): step 0", 2))
        first = count.text().splitlines()[0]
        self.assertRegex(first, r"^ddprun \d+\.\d+\.\d+ run [-0-9a-f]{36}: 2 ranks, "
                                "max restarts 3$")
        self.assertLessEqual(len(first), 80)
        os.kill(int(pids["1"]), signal.SIGKILL)
        count.until(r"rank \d of 2, restart 1, pid \d+: step 0", 2)
        killed = rf"rank 1 \(local 1, pid {pids['1']}\) on \S+ received SIGKILL{kSenderUnknown}"
        lines = [line for line in count.text().splitlines() if line.startswith("ddprun: ")]
        self.assertRegex(lines.pop(0),
                         rf"^ddprun: warning \[W-KILLED\] {killed}; stopping 1 other rank$")
        if "[CLEANUP]" in lines[0]:  # unless each of them was between two commands
            lines.pop(0)
        self.assertEqual(lines, ["ddprun: note [RESTART] restart 1 of 3, round 2"])
        self.assertEqual(count.end(signal.SIGINT), 130)
        self.assertRegex(count.text().splitlines()[-1], r"\[STOP\] 2 ranks gone .*; exit 130$")

    def test_ten_minutes_let_one_fail(self):
        failed = run("--standalone", "--nproc-per-node", "2", FAIL_ONCE)
        self.assertEqual(failed.returncode, 1)
        report = failed.stderr.partition("ddprun: error ")[2]
        self.assertRegex(report, r"^\[W-EXIT\] rank 1 \(local 1, pid \d+\) on \S+ ended with exit "
                                 "code 1, first failure of the run\n  when  ")
        self.assertIn(f"  evidence  {kTracebackIsAbove}\n            | ValueError: the first "
                      "attempt always fails\n", report)
        self.assertTrue(report.endswith("  exit      code 1\n"), report)
        again = run("--standalone", "--nproc-per-node", "2", "--max-restarts", "1", FAIL_ONCE)
        self.assertEqual(again.returncode, 0)

    def test_several_nodes_on_one_machine(self):
        port = free_port()
        node = ("--nnodes=1:2", "--rdzv-backend=c10d", f"--rdzv-endpoint=localhost:{port}",
                "--rdzv-conf=last_call_timeout=30s", COUNT)
        first = self.start(*node)
        first.until(r"\[RUN\] waiting for nodes: 1 of at most 2|coordinator")
        second = self.start(*node)
        first.until("rank 0 of 2, restart 0")
        agent = supervisors_of(second.process.pid)[2]
        os.kill(agent, signal.SIGKILL)
        first.until(r"\[RUN\] round 1 -> 2: lost \S+ \(rank 1\): connection closed; 1 node remains")
        first.until("rank 0 of 1, restart 0")
        self.start(*node)
        first.until(r"\[RUN\] round 2 -> 3: \S+ joined; 2 ranks on 2 nodes")
        first.until("rank 0 of 2, restart 0", 2)
        with urllib.request.urlopen(f"http://localhost:{port}/", timeout=HUNG) as page:
            self.assertIn("round 2 -&gt; 3: ", page.read().decode())
        self.assertEqual(first.end(signal.SIGINT), 130)

    def test_a_link_called_torchrun_is_enough(self):
        link = os.path.join(self.folder, "torchrun")
        os.symlink(DDPRUN, link)
        done = subprocess.run([link, "--standalone", "--nproc-per-node=2", "sh", "-c", "exit 0"],
                              capture_output=True, text=True, timeout=HUNG, env=ENVIRONMENT)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_macros_and_double_dollars_in_arguments(self):
        done = run("--standalone", "sh", "-c", 'echo "$@"', "sh", "--local-rank=${local_rank}",
                   "$$x", "--", "a")
        self.assertEqual(done.stdout, "--local-rank=0 $x -- a\n")

    def test_local_ranks_above_9_can_be_named(self):
        done = run("--standalone", "--nproc-per-node=12", "-r", "10:1,11:3",
                   "--log-dir=" + self.folder, "sh", "-c", "echo out; echo err >&2")
        self.assertEqual(done.stdout.count("out\n"), 10)
        logs = pathlib.Path(self.folder).rglob("std*.log")
        self.assertEqual(sorted("/".join(log.parts[-2:]) for log in logs),
                         ["10/stdout.log", "11/stderr.log", "11/stdout.log"])

    def test_an_environment_that_is_active_runs_the_script(self):
        for name in ("chosen", "venv", "conda"):
            binaries = pathlib.Path(self.folder, name, "bin")
            binaries.mkdir(parents=True)
            python = binaries / "python"
            python.write_text(f"#!/bin/sh\necho {name} $*\n")
            python.chmod(0o755)
        script = pathlib.Path(self.folder, "train.py")
        script.touch()
        variables = {"PYTHON_EXEC": f"{self.folder}/chosen/bin/python",
                     "VIRTUAL_ENV": f"{self.folder}/venv", "CONDA_PREFIX": f"{self.folder}/conda"}
        for name in ("chosen", "venv", "conda"):
            done = run("--standalone", str(script), **variables)
            self.assertEqual(done.stdout, f"{name} -u {script}\n")
            variables.pop(next(iter(variables)))

    def test_every_shape_of_a_first_line_fits_80_columns_without_a_log_directory(self):
        for words in ([], ["--standalone", "--max-restarts=3"], ["--nproc-per-node=4"]):
            self.assertLessEqual(len(run(*words, "true").stderr.splitlines()[0]), 80)

    def test_a_single_node_at_its_own_endpoint_waits_for_no_other(self):
        port = free_port()
        done = run("--nnodes=1", "--rdzv-backend=c10d", f"--rdzv-endpoint=localhost:{port}", "true")
        self.assertEqual(done.returncode, 0)
        self.assertIn(f"--rdzv-endpoint=localhost:{port} not used", done.stderr)

    def test_ddprun_rdzvd_listens_on_loopback_unless_it_is_told_otherwise(self):
        daemon = subprocess.Popen([RDZVD, "--port=0"], stdout=subprocess.PIPE, text=True)
        try:
            self.assertRegex(daemon.stdout.readline(), r" 127\.0\.0\.1:\d+")
        finally:
            daemon.terminate()
            daemon.communicate(timeout=HUNG)


if __name__ == "__main__":
    RDZVD = os.path.abspath(sys.argv.pop(2))
    DDPRUN = os.path.abspath(sys.argv.pop(1))
    unittest.main()
