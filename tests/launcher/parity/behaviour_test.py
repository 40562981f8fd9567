"""The tables of docs/TORCHRUN.md, both columns of a row: behaviour_test.py DDPRUN.

What the page says of torchrun is run under torchrun, what it says of ddprun under ddprun.
"""

import contextlib
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest

from both import Torchrun, VENV, ddprun, environment

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "support"))
from ports import free_port  # noqa: E402
from supervisors import stat_of  # noqa: E402

HUNG = 120  # seconds after which a test counts as hung
STAY = "echo $$ > pid.part; mv pid.part pid; exec sleep 1000"


def wait_for(condition, what):
    deadline = time.monotonic() + HUNG
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"no {what} within {HUNG} s")
        threading.Event().wait(0.01)


def is_alive(pid):
    return stat_of(pid)[1] not in ("", "Z", "X")


class Run:
    """`words` under one launcher, in a directory of its own; what it wrote is in `text()`."""

    def __init__(self, launcher, words, folder, **variables):
        self.folder = pathlib.Path(folder, launcher.__name__)
        self.folder.mkdir(parents=True)
        (self.folder / "tmp").mkdir()
        streams = [self.folder / name for name in ("in", "out", "err")]
        for path in streams:
            path.touch()
        variables = {"TMPDIR": str(self.folder / "tmp"), **variables}
        self.process = launcher(words, streams, self.folder,
                                environment(variables, str(self.folder)))
        self.pid = self.process.pid

    def end(self):
        return self.process.wait(timeout=HUNG)

    def text(self):
        return "".join((self.folder / name).read_text() for name in ("out", "err"))

    def read(self, name):
        path = self.folder / name
        wait_for(path.exists, name)
        return path.read_text()


def as_programs():
    """Where the launcher has to inherit something: each as a program of its own."""
    def torchrun(words, streams, cwd, env):
        return start([str(VENV / "bin" / "torchrun"), *words], streams, cwd, env)

    def ddprun(words, streams, cwd, env):
        return start([DDPRUN, *words], streams, cwd, env)

    return torchrun, ddprun


def under_nohup():
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR2})


def start(words, streams, cwd, env):
    with contextlib.ExitStack() as stack:
        opened = [stack.enter_context(open(path, "r+b")) for path in streams]
        return subprocess.Popen(words, stdin=opened[0], stdout=opened[1], stderr=opened[2],
                                cwd=cwd, env=env, preexec_fn=under_nohup)


class Behaviour(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def both(self, *words, launchers=(Torchrun, ddprun), options=(), **variables):
        for launcher in launchers:
            run = Run(launcher, [*options, *words], self.folder, **variables)
            self.addCleanup(self.kill_left, run)
            yield run

    def kill_left(self, run):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            os.kill(int((run.folder / "pid").read_text()), signal.SIGKILL)
        run.process.kill()
        run.process.wait()

    def shell(self, script, *options, **named):
        return self.both("--standalone", *options, "--no-python", "sh", "-c",
                         script.replace("$", "$$"), **named)

    def codes(self, *words, **variables):
        return [run.end() for run in self.both(*words, **variables)]

    def test_exit_codes(self):
        text = pathlib.Path(self.folder, "text")
        text.write_text("no program\n")
        for number, (words, codes) in enumerate((
                (["--nproc-per-node=foo", "W"], [1, 2]),
                (["--standalone", "--no-python", "/no/such"], [1, 127]),
                (["--standalone", "--no-python", str(text)], [1, 126]),
                (["--standalone", "--event-log-handler=zeus", "--no-python", "true"], [1, 2]),
                (["--standalone", "--signals-to-handle=SIGKILL", "--no-python", "true"], [1, 2]),
                (["--standalone", "--log-dir=/dev/null", "--duplicate-stdout-filters=a", "-t3",
                  "--no-python", "true"], [1, 2]),
                (["--rdzv-backend=c10d", "--rdzv-endpoint=localhost:0", "--rdzv-id=a/b",
                  "--log-dir=logs", "--no-python", "true"], [1, 0]))):
            with self.subTest(words):
                self.folder += f"/{number}"
                self.assertEqual(self.codes(*words), codes)

    def test_a_stop_signal(self):
        codes = []
        for run in self.shell(STAY):
            worker = int(run.read("pid"))
            os.kill(run.pid, signal.SIGTERM)
            codes.append(run.end())
        self.assertEqual(codes, [1, 128 + signal.SIGTERM])
        # torchrun leaves the worker if the signal meets it between start and bookkeeping.
        self.assertFalse(is_alive(worker))

    def test_a_signal_that_is_not_handled_ends_torchrun_alone_and_is_forwarded_by_ddprun(self):
        theirs, ours = self.shell("trap 'echo > got' USR1; " + STAY.replace("exec sleep 1000",
                                  "until [ -e got ]; do sleep 0.01; done; rm pid"))
        for run in (theirs, ours):
            run.read("pid")
            os.kill(run.pid, signal.SIGUSR1)
        self.assertEqual(theirs.end(), -signal.SIGUSR1)
        self.assertTrue(is_alive(int(theirs.read("pid"))))
        self.assertEqual(ours.end(), 0, ours.text())
        (theirs.folder / "got").touch()

    def test_a_launcher_that_is_killed_leaves_its_workers_or_not(self):
        theirs, ours = self.shell(STAY)
        workers = [int(run.read("pid")) for run in (theirs, ours)]
        for run in (theirs, ours):
            os.kill(run.pid, signal.SIGKILL)
        wait_for(lambda: not is_alive(workers[1]), "end of ddprun's worker")
        self.assertEqual(theirs.end(), -signal.SIGKILL)
        self.assertTrue(is_alive(workers[0]))

    def test_nohup(self):
        codes = []
        for run in self.shell("until [ -e on ]; do sleep 0.01; done & echo $! > pid; wait",
                              launchers=as_programs()):
            run.read("pid")
            os.kill(run.pid, signal.SIGHUP)
            if run.folder.name == "ddprun":
                (run.folder / "on").touch()
            codes.append(run.end())
        self.assertEqual(codes, [1, 0])  # torchrun's handler replaces what nohup has set

    def test_what_a_worker_inherits_of_signals(self):
        seen = []
        for run in self.both("--standalone", "--no-python", "grep", "-E", "SigBlk|SigIgn",
                             "/proc/self/status", launchers=as_programs()):
            self.assertEqual(run.end(), 0)
            seen.append([int(value, 16) for value in re.findall(r"Sig...:\s*(\w+)", run.text())])
        hangup, first, second = (1 << number - 1 for number in
                                 (signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2))
        self.assertEqual(seen, [[second, first], [0, hangup | first]])

    def test_a_missing_script_uses_restarts_or_not(self):
        theirs, ours = self.both("--standalone", "--max-restarts=2", "no_such.py")
        self.assertEqual((theirs.end(), ours.end()), (1, 2))
        self.assertEqual([run.text().count("can't open file") for run in (theirs, ours)], [3, 0])
        self.assertEqual(len(ours.text().splitlines()), 1)

    def test_what_a_run_without_log_dir_leaves(self):
        for redirects, left in (("-r0", (1, 0)), ("-r3", (1, 1))):
            with self.subTest(redirects):
                self.folder += "/" + redirects
                theirs, ours = self.shell("echo a", redirects)
                self.assertEqual((theirs.end(), ours.end()), (0, 0))
                found = [list((run.folder / "tmp").glob("torchelastic_*"))
                         for run in (theirs, ours)]
                self.assertEqual(tuple(map(len, found)), left)
        self.assertIn(str(found[1][0]), ours.text())

    def test_the_error_file_below_a_relative_log_dir(self):
        paths = [run.end() or run.text().splitlines() for run in
                 self.shell("echo $TORCHELASTIC_ERROR_FILE", "--log-dir=logs")]
        theirs, ours = [next(line for line in lines if line.endswith("error.json"))
                        for lines in paths]
        self.assertTrue(theirs.startswith("logs/"))
        self.assertTrue(ours.startswith("/"))

    def test_the_master_port_after_a_restart(self):
        changes = []
        for number, words in enumerate((["--standalone"], [f"--master-port={free_port()}"])):
            self.folder += f"/{number}"
            for run in self.both(*words, "--max-restarts=1", "--no-python", "sh", "-c",
                                 "echo port $MASTER_PORT >> ports; "
                                 "[ $TORCHELASTIC_RESTART_COUNT = 1 ]".replace("$", "$$")):
                self.assertEqual(run.end(), 0, run.text())
                changes.append(len(set(run.read("ports").split()) - {"port"}) == 2)
        self.assertEqual(changes, [False, True, False, False])

    def test_what_a_worker_leaves_behind(self):
        script = "setsid sh -c '" + STAY + "' & until [ -e pid ]; do sleep 0.01; done"
        theirs, ours = self.shell(script)
        self.assertEqual(theirs.end(), 0)
        self.assertTrue(is_alive(int(theirs.read("pid"))))
        left = int(ours.read("pid"))
        os.kill(ours.pid, signal.SIGTERM)
        ours.end()
        self.assertFalse(is_alive(left))

    def test_os_exit_below_run_path(self):
        script = pathlib.Path(self.folder, "script.py")
        script.write_text("import os\nopen('done', 'w').close()\nos._exit(0)\n")
        theirs, ours = self.both("--standalone", "--run-path", str(script))
        theirs.read("done")
        self.assertEqual(ours.end(), 0)
        with self.assertRaises(subprocess.TimeoutExpired):
            theirs.process.wait(timeout=3)  # thirty of its polls

    def test_a_flag_in_words(self):
        theirs, ours = self.both("--no-python", "true", PET_STANDALONE="true")
        self.assertEqual((theirs.end(), ours.end()), (1, 0))
        self.assertIn("Traceback", theirs.text())

    def test_a_health_port_that_torchrun_does_not_serve(self):
        port = free_port()
        theirs, = self.shell(STAY, launchers=[Torchrun], TORCHELASTIC_HEALTH_CHECK_PORT=str(port))
        theirs.read("pid")
        with self.assertRaises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", port))


if __name__ == "__main__":  # the copies of torchrun import this file
    DDPRUN = os.path.abspath(sys.argv[1])
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]], verbosity=1)
