"""A ddprun that runs in the background, and commands on it, for the tests of this folder."""

import contextlib
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from eventually import HUNG, eventually

DDPRUN = os.path.abspath(sys.argv[1]) if len(sys.argv) > 1 else ""

# Says that it runs and waits for a signal to end it.
WAITS = "echo up; exec tail -f /dev/null"


class Run:
    """`ddprun` with `words`, whose control socket is in a directory of this test alone."""

    def __init__(self, *words, environment=None, **options):
        self.folder = tempfile.TemporaryDirectory(dir="/tmp")
        own = {"XDG_RUNTIME_DIR": self.folder.name}
        self.environment = {**os.environ, **own, **(environment or {})}
        self.process = subprocess.Popen(
            [DDPRUN, *words],
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            **options,
        )

    def __enter__(self):
        return self

    def __exit__(self, *_):
        with contextlib.suppress(ProcessLookupError):
            self.process.send_signal(signal.SIGKILL)
        self.process.communicate()
        self.folder.cleanup()

    def wait_until_up(self, ranks=1):
        for _ in range(ranks):
            assert self.process.stdout.readline() == "up\n", self.process.communicate()
        assert eventually(lambda: self.listed()), self.sockets()

    def command(self, *words, **options):
        return subprocess.run(
            [DDPRUN, *words],
            env=self.environment,
            timeout=HUNG,
            capture_output=True,
            text=True,
            check=False,
            **options,
        )

    def sockets(self):
        return sorted(pathlib.Path(self.folder.name).glob("ddprun/*.sock"))

    def listed(self):
        """The lines of `ddprun ps` for this process."""
        lines = self.command("ps").stdout.splitlines()[1:]
        return [line for line in lines if f" {self.process.pid} " in line]

    def status(self):
        answer = self.command("status", str(self.process.pid), "--json")
        assert answer.returncode == 0, answer
        return json.loads(answer.stdout)

    def end(self, number=signal.SIGTERM):
        """Returns the exit code, standard output and standard error."""
        self.process.send_signal(number)
        out, err = self.process.communicate(timeout=HUNG)
        return self.process.returncode, out, err


def named(run_id, *words, **options):
    """A single node whose run id is given."""
    return Run(f"--rdzv-id={run_id}", "--nnodes=1", "--master-port=0", *words, **options)


def standalone(*words, **options):
    return Run("--standalone", *words, **options)
