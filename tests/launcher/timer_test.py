#!/usr/bin/env python3
"""Timers of workers through the pipe of TORCHELASTIC_TIMER_FILE. With a Python that has torch its
client runs under the real torchrun and under ddprun; any other Python writes the lines itself.

python3 tests/launcher/timer_test.py path/to/ddprun
"""

import importlib.util
import json
import os
import pathlib
import signal
import stat
import subprocess
import sys
import tempfile
import unittest

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from eventually import eventually  # noqa: E402

DDPRUN = ""
HUNG = 120  # seconds after which a test counts as hung
HAS_TORCH = importlib.util.find_spec("torch") is not None

# Rank 0 waits for the others; what a rank does is in its part.
PLAIN = """
import json, os, signal, stat, subprocess, sys, time
rank, path = os.environ["RANK"], os.environ["TORCHELASTIC_TIMER_FILE"]
assert stat.S_ISFIFO(os.stat(path).st_mode)
os.write(1, f"pipe {path} {os.getpid()}\\n".encode())  # in one piece
def send(scope, expires, number=signal.SIGKILL, pid=None):
    line = json.dumps({"version": 1, "pid": pid or os.getpid(), "scope_id": scope,
                       "expiration_time": expires, "signal": int(number)})
    with open(path, "w") as pipe:
        pipe.write(line + "\\n")
"""
TORCH = """
import os, signal, stat
import torch.distributed.elastic.timer as timer
path = os.environ["TORCHELASTIC_TIMER_FILE"]
assert stat.S_ISFIFO(os.stat(path).st_mode)
os.write(1, f"pipe {path} {os.getpid()}\\n".encode())  # in one piece
timer.configure(timer.FileTimerClient(path))
"""


def has_ended(pid):
    """One that its new parent does not wait for is a zombie."""
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
    except OSError:
        return True


class Done:
    """What is left of a run."""

    def __init__(self, launcher, script, *options, timer_file=None):
        variables = {**os.environ, "TORCHELASTIC_ENABLE_FILE_TIMER": "1"}
        variables.pop("TORCHELASTIC_TIMER_FILE", None)
        if timer_file:
            variables["TORCHELASTIC_TIMER_FILE"] = timer_file
        with tempfile.TemporaryDirectory() as folder:
            worker = pathlib.Path(folder) / "worker.py"
            worker.write_text(script)
            run = subprocess.run(
                [*launcher, "--standalone", f"--log-dir={folder}/logs", *options, worker],
                env={**variables, "PYTHON_EXEC": sys.executable, "TMPDIR": folder},
                capture_output=True, text=True, timeout=HUNG)
            self.code, self.out, self.err = run.returncode, run.stdout, run.stderr
            events = list((pathlib.Path(folder) / "logs").rglob("events.jsonl"))
            lines = events[0].read_text().splitlines() if events else []
            self.events = [json.loads(line) for line in lines]
        named = [line.split() for line in self.out.splitlines() if line.startswith("pipe ")]
        self.pipes = {words[1] for words in named}
        self.pids = [int(words[2]) for words in named]

    def of(self, name):
        return [event for event in self.events if event["event"] == name]


def ddprun(script, *options, **named):
    return Done([DDPRUN], script, *options, **named)


class Plain(unittest.TestCase):
    def test_a_timer_that_expires_ends_its_worker_which_the_report_names(self):
        done = ddprun(PLAIN + """
signal.signal(signal.SIGTERM, signal.SIG_IGN)  # so that only the timer's signal ends it
if rank == "1":
    send("train.py#42", time.time() + 0.1)
    signal.pause()
signal.signal(signal.SIGTERM, signal.SIG_DFL)
signal.pause()
""", "--nproc-per-node=2")
        self.assertEqual(done.code, 128 + signal.SIGKILL, done.err)
        self.assertIn("error [W-TIMER] rank 1 ", done.err)
        self.assertIn('the timer "train.py#42" expired; ddprun sends SIGKILL', done.err)
        expired = done.of("timer_expired")
        self.assertEqual([(event["rank"], event["scope"], event["signal"]) for event in expired],
                         [(1, "train.py#42", 9)])
        ends = {event["rank"]: event["signal"] for event in done.of("worker_exited")}
        self.assertEqual(ends[1], signal.SIGKILL)
        self.assertEqual([path for path in done.pipes if os.path.exists(path)], [])

    def test_a_timer_that_is_released_or_set_again_ends_nothing(self):
        done = ddprun(PLAIN + """
send("released", time.time() + 2)
send("again", time.time() + 2)
send("released", -1, 0)
send("again", time.time() + 3600)
send("without a signal", time.time(), 0)
signal.sigtimedwait({signal.SIGUSR2}, 2.2)
""", "--nproc-per-node=2")
        self.assertEqual(done.code, 0, done.err)
        self.assertNotIn("TIMER", done.err)
        self.assertEqual({event["scope"] for event in done.of("timer_expired")},
                         {"without a signal"})

    def test_a_timer_of_a_process_that_a_worker_has_started_is_the_workers(self):
        done = ddprun(PLAIN + """
if rank == "1":
    loader = subprocess.Popen(["sleep", "600"])
    send("loader", time.time(), signal.SIGTERM, loader.pid)
    loader.wait()
signal.pause()
""", "--nproc-per-node=2")
        self.assertEqual(done.code, 128 + signal.SIGTERM, done.err)
        self.assertRegex(done.err, r"error \[W-TIMER\] rank 1 .*: the timer \"loader\" of its "
                                   r"process \d+ expired; ddprun sends SIGTERM")

    def test_the_timer_of_a_worker_that_has_ended_does_nothing(self):
        done = ddprun(PLAIN + """
if os.environ["TORCHELASTIC_RESTART_COUNT"] == "0":
    if rank == "1":
        send("of the dead", time.time() + 2)
        sys.exit(3)
    signal.pause()
signal.sigtimedwait({signal.SIGUSR2}, 2.2)
""", "--nproc-per-node=2", "--max-restarts=1")
        self.assertEqual(done.code, 0, done.err)
        self.assertIn("warning [W-EXIT] rank 1 ", done.err)
        self.assertNotIn("TIMER", done.err)
        self.assertEqual(done.of("timer_expired"), [])

    def test_a_timer_that_expires_while_the_round_ends_is_no_other_failure(self):
        done = ddprun(PLAIN + """
if rank == "1":
    sys.exit(3)
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
signal.sigwait({signal.SIGTERM})
send("while it stops", time.time())
signal.sigtimedwait({signal.SIGUSR2}, 1)
sys.exit(0)
""", "--nproc-per-node=2")
        self.assertEqual(done.code, 3, done.err)
        self.assertNotIn("TIMER", done.err)
        self.assertEqual([event["scope"] for event in done.of("timer_expired")],
                         ["while it stops"])
        self.assertEqual({event["rank"]: event["exit_code"] for event in done.of("worker_exited")},
                         {0: 0, 1: 3})

    def test_a_restart_follows(self):
        done = ddprun(PLAIN + """
if os.environ["TORCHELASTIC_RESTART_COUNT"] == "0":
    send("first round", time.time())
    signal.pause()
""", "--nproc-per-node=2", "--max-restarts=1")
        self.assertEqual(done.code, 0, done.err)
        self.assertIn("[W-TIMER]", done.err)
        self.assertEqual(len(done.pipes), 1, done.out + done.err)

    def test_requests_that_are_wrong_end_nothing_and_are_told_once(self):
        done = ddprun(PLAIN + """
with open(path, "wb") as pipe:
    for line in (b"garbage", b"x" * 200000, b"{}", b"[" * 4000, bytes(range(11, 256))):
        pipe.write(line + b"\\n")
send("no such signal", time.time(), 1000)
""", "--nproc-per-node=2")
        self.assertEqual(done.code, 0, done.err)
        self.assertEqual(done.err.count("[TIMER]"), 1, done.err)
        self.assertIn("is ignored: ", done.err)
        self.assertEqual(done.of("timer_expired"), [])

    def test_a_process_that_no_worker_has_started_cannot_have_a_timer(self):
        done = ddprun(PLAIN + """
other = os.path.join(os.environ["TMPDIR"], "pid")
if rank == "1":
    with open(other + ".new", "w") as file:
        file.write(str(os.getpid()))
    os.rename(other + ".new", other)
    sys.exit(0)
while not os.path.exists(other):  # and until the agent knows of its end
    signal.sigtimedwait({signal.SIGUSR2}, 0.01)
while os.path.exists("/proc/" + open(other).read()):
    signal.sigtimedwait({signal.SIGUSR2}, 0.01)
for pid in (os.getppid(), 1):
    send("of another", time.time(), pid=pid)
send("mine", time.time(), signal.SIGTERM)
signal.pause()
""", "--nproc-per-node=2")
        self.assertEqual(done.code, 128 + signal.SIGTERM, done.err)
        self.assertEqual(done.err.count("[TIMER]"), 1, done.err)
        self.assertEqual([event["scope"] for event in done.of("timer_expired")], ["mine"])

    def test_the_pipe_may_be_named_and_another_file_there_is_kept(self):
        with tempfile.TemporaryDirectory() as folder:
            named = os.path.join(folder, "timers")
            done = ddprun(PLAIN, timer_file=named)
            self.assertEqual((done.code, done.pipes), (0, {named}), done.err)
            self.assertEqual(os.listdir(folder), [])
            pathlib.Path(named).write_text("precious")
            done = ddprun(PLAIN, timer_file=named)
            self.assertEqual(done.code, 0, done.err)
            self.assertNotEqual(done.pipes, {named})
            self.assertIn(f"note [TIMER] {named} is ", done.err)
            self.assertIn("; the timers of workers are at ", done.err)
            self.assertEqual(pathlib.Path(named).read_text(), "precious")

    def test_without_the_variable_there_is_no_pipe(self):
        for off in ("", "0", "true"):
            run = subprocess.run(
                [DDPRUN, "--standalone", "--no-python", "env"], capture_output=True, text=True,
                env={**os.environ, "TORCHELASTIC_ENABLE_FILE_TIMER": off}, timeout=HUNG)
            self.assertEqual(run.returncode, 0, run.stderr)
            self.assertNotIn("TORCHELASTIC_TIMER_FILE", run.stdout)


@unittest.skipUnless(HAS_TORCH, "no torch")
class Both(unittest.TestCase):
    """torch's client under both launchers. An expiry kills torchrun, too, and leaves its other
    workers running: hence one worker there."""

    def both(self, script):
        torchrun = [sys.executable, "-m", "torch.distributed.run"]
        theirs, ours = Done(torchrun, TORCH + script), ddprun(TORCH + script)
        for done in (theirs, ours):
            self.assertEqual(len(done.pids), 1, done.err)
            self.assertEqual(len(done.pipes), 1, done.out + done.err)
        return theirs, ours

    def test_an_expired_timer_ends_worker_and_run(self):
        theirs, ours = self.both("""
with timer.expires(after=0.2, scope="forward"):
    signal.pause()
print("survived", flush=True)
""")
        self.assertEqual(theirs.code, -signal.SIGKILL, theirs.err)
        self.assertEqual(ours.code, 128 + signal.SIGKILL, ours.err)
        self.assertIn('the timer "forward" expired; ddprun sends SIGKILL', ours.err)
        for done in (theirs, ours):
            self.assertNotIn("survived", done.out)
            self.assertTrue(eventually(lambda: has_ended(done.pids[0])))

    def test_a_timer_that_is_released_in_time_changes_nothing(self):
        theirs, ours = self.both("""
for step in range(3):
    with timer.expires(after=60):
        print("step", step, flush=True)
""")
        for done in (theirs, ours):
            self.assertEqual(done.code, 0, done.err)
            self.assertEqual(done.out.count("step"), 3)
        self.assertNotIn("TIMER", ours.err)


if __name__ == "__main__":
    DDPRUN = os.path.abspath(sys.argv.pop(1))
    unittest.main(verbosity=2)
