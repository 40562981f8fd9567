"""What docs/TORCHRUN.md and README.md show happens, with the programs and command lines they name.

    documented_test.py path/to/ddprun path/to/ddprun-rdzvd
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile
import threading
import time
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.append(str(HERE.parent / "support"))
from ports import free_port  # noqa: E402

DDPRUN = RDZVD = ""
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


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def start(self, *words):
        running = Running(*words, folder=self.folder)
        self.addCleanup(running.process.wait)
        self.addCleanup(running.process.kill)
        return running


class Documented(Case):
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

    @unittest.skipUnless(os.geteuid() == 0, "only root can give a directory away")
    def test_as_root_the_log_directory_of_another_user_is_used_with_a_warning(self):
        os.chown(self.folder, 65533, 65533)
        done = run("--standalone", "-r3", "--max-restarts=1", "--log-dir=" + self.folder,
                   "sh", "-c", "exit $$((1 - TORCHELASTIC_RESTART_COUNT))")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stderr.count("warning [LOG] --log-dir "), 1, done.stderr)
        self.assertIn("belongs to user 65533", done.stderr)
        self.assertEqual(len(list(pathlib.Path(self.folder).glob("*/attempt_*/0/stdout.log"))), 2)

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
