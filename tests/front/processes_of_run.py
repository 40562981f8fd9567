"""One ddprun with workers of a shape, and every process that it ever started, found by a mark in
their environment."""

import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import threading
import time
import uuid

HERE = pathlib.Path(__file__).resolve().parent
sys.path += [str(HERE.parent / "support"), str(HERE.parent / "chaos")]
import processes  # noqa: E402
from ports import free_port  # noqa: E402
from sentences import kTerminalClosed  # noqa: E402
from supervisors import children_of, stat_of, supervisors_of  # noqa: E402

HUNG = 30  # seconds after which a wait counts as a hang
LEFT_MAX = 10  # the same for what a run leaves behind; on a quiet machine it takes milliseconds

# What a worker starts, and how many processes named sleep it consists of.
SHAPES = {
    "a script that runs a child": ("sleep 1000; true", 1),
    "a child in a session of its own": ("setsid sleep 1000 & sleep 1000; true", 2),
    "a daemon": ("(setsid sh -c 'sleep 1000; true' &); exec sleep 1000", 2),
    "16 children in three sessions":
        ("for i in 1 2 3 4 5 6; do sleep 1000 & done; "
         "setsid sh -c 'for i in 1 2 3 4 5; do sleep 1000 & done; wait' & "
         "setsid sh -c 'for i in 1 2 3 4 5; do sleep 1000 & done; wait' & wait", 16),
}


def wait_for(condition, what, seconds=HUNG):
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        if time.monotonic() > deadline:
            raise AssertionError(f"hang: no {what} within {seconds} s")
        threading.Event().wait(0.005)
    return found


class Run:
    """Use in a `with` statement: whatever is left is killed at the end."""

    def __init__(self, ddprun, script, options=(), sleeps=None, ranks=2, **popen):
        self.mark = "FRONT_TEST=" + uuid.uuid4().hex
        name, _, value = self.mark.partition("=")
        self.folder = tempfile.TemporaryDirectory()
        environment = {**os.environ, name: value, "DIR": self.folder.name}
        self.sleeps = sleeps
        self.ranks = ranks
        self.console = pathlib.Path(self.folder.name) / "console"
        popen.setdefault("stdin", subprocess.DEVNULL)
        with open(self.console, "wb") as console:
            popen.setdefault("stdout", console)
            popen.setdefault("stderr", console)
            launcher = [ddprun] if isinstance(ddprun, str) else ddprun
            self.process = subprocess.Popen(
                [*launcher, *(options or ["--standalone"]), f"--nproc-per-node={ranks}",
                 "sh", "-c", script],
                env=environment, **popen)

    def __enter__(self):
        return self

    def __exit__(self, failure, *_):
        if failure is not None:
            print(self.text(), *map(processes.describe, self.left()), sep="\n", flush=True)
        for pid in processes.with_mark(self.mark):
            processes.kill(pid)
        self.process.kill()
        self.process.wait()
        self.folder.cleanup()

    def text(self):
        return self.console.read_text(errors="replace")

    def path(self, name):
        return pathlib.Path(self.folder.name) / name

    def supervisors(self):
        """Front, guard and agent, when every process of the workers is there."""
        found = supervisors_of(self.process.pid)
        if self.sleeps is not None:
            wait_for(lambda: self.count("sleep") == self.sleeps * self.ranks, "worker processes")
        return found

    def left(self):
        return processes.with_mark(self.mark)

    def count(self, name):
        return sum(stat_of(pid)[0] == name for pid in self.left())

    def end(self, seconds=HUNG):
        """The exit code: 128 + n for signal n, as in a shell."""
        code = self.process.wait(timeout=seconds)
        return 128 - code if code < 0 else code

    def kill(self, pids, number=signal.SIGKILL):
        """Seconds until nothing of the run is alive. None of several victims sees another die."""
        for pid in pids if len(pids) > 1 else []:
            processes.kill(pid, signal.SIGSTOP)  # which only SIGKILL overrides
        began = time.monotonic()
        # The death of the front continues its guard, which would see it.
        for pid in reversed(pids):
            processes.kill(pid, number)
        self.check_nothing_left()
        return time.monotonic() - began

    def check_nothing_left(self):
        deadline = time.monotonic() + LEFT_MAX
        while left := self.left():
            if time.monotonic() > deadline:
                raise AssertionError("left behind: " + "; ".join(map(processes.describe, left)))
            self.process.poll()
            threading.Event().wait(0.001)
