#!/usr/bin/env python3
"""hang_test.py DDPRUN STUCK: ranks that really hang, and ranks that only look like it.

STUCK is tests/proc/stuck.cpp, which locks a mutex twice. Needs no torch. Cases with native stacks
accept that ptrace is denied, if that is said.
"""

import glob
import os
import pty
import shlex
import shutil
import subprocess
import sys
import tempfile
import time

DDPRUN, STUCK = sys.argv[1:3]
IN_SHELL, PYTHON = shlex.quote(STUCK), shlex.quote(sys.executable)
DENIED = "the kernel denies ptrace"
SLEEP = "exec tail -f /dev/null"
TIMED_OUT = ("RuntimeError: [/pytorch/third_party/gloo/gloo/transport/tcp/unbound_buffer.cc:78] "
             "Timed out waiting 4000ms for recv operation to complete")
PYTHON_LOCK = """
import threading
def load_batch():
    lock = threading.Lock()
    lock.acquire()
    lock.acquire()
load_batch()
"""

IGNORES_SIGTERM = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)"


class Ended:
    """One run of ddprun with a shell script per rank, in a log directory of its own."""

    def __init__(self, *options: str, script: str, ranks: int = 3):
        with tempfile.TemporaryDirectory() as logs:
            command = [DDPRUN, "--standalone", f"--nproc-per-node={ranks}", f"--log-dir={logs}",
                       "--shutdown-timeout=5", *options, "--no-python", "sh", "-c", script]
            done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
            self.code = done.returncode
            self.text = done.stderr
            self.dumps = []
            for path in sorted(glob.glob(f"{logs}/*/attempt_*/stacks-*s.txt")):
                with open(path, encoding="utf-8") as file:
                    self.dumps.append(file.read())

    def check(self, condition: bool, what: str) -> None:
        if not condition:
            sys.exit(f"{what}: exit code {self.code}\n{self.text}\n" + "\n".join(self.dumps))


def the_hang_timeout() -> None:
    ended = Ended("--hang-timeout=1s", script=f'[ $RANK = 1 ] && {SLEEP}; exec {IN_SHELL} deadlock')
    ended.check(ended.code == 114, "a hang has an exit code of its own")
    ended.check("error [HANG] no rank " in ended.text, "the report says why")
    ended.check(len(ended.dumps) == 1, "one dump is in the log directory")
    native = "2 ranks: wait_for_itself" in ended.dumps[0]
    ended.check(native or DENIED in ended.dumps[0], "ranks are grouped by their native place")
    ended.check("train_step (" in ended.dumps[0] or not native, "whole stacks are in the dump")
    if native:
        ended.check(": 1; 2 ranks: wait_for_itself" in ended.text, "the odd rank is named first")


def a_stopped_rank_is_the_odd_one() -> None:
    ended = Ended("--hang-timeout=1s", script=f'[ $RANK = 2 ] && kill -STOP $$$$; {SLEEP}')
    ended.check(ended.code == 114, "a stopped rank hangs")
    ended.check("1 rank: stopped (state T): 2;" in ended.text, "it is named")


def a_hang_takes_a_restart() -> None:
    ended = Ended("--hang-timeout=1s", "--max-restarts=1",
                  script=f'[ $TORCHELASTIC_RESTART_COUNT = 1 ] && exit 0; {SLEEP}')
    ended.check(ended.code == 0, "the restarted round succeeds")
    ended.check("warning [HANG]" in ended.text, "the hang is told with its evidence")
    ended.check("restart 1 of 1" in ended.text, "one restart is used")


def ranks_that_compute_are_left_alone() -> None:
    script = "[ $RANK = 0 ] && timeout 3 sh -c 'while :; do :; done'; true"
    ended = Ended("--hang-timeout=1s", script=script)
    ended.check(ended.code == 0 and "HANG" not in ended.text, "a quiet rank that computes")


def ranks_that_write_are_left_alone() -> None:
    script = "i=0; while [ $i -lt 15 ]; do timeout 0.2 tail -f /dev/null; echo $i; i=$((i+1)); done"
    ended = Ended("--hang-timeout=1s", script=script, ranks=1)
    ended.check(ended.code == 0 and "HANG" not in ended.text, "a rank that writes now and then")


READS = """
import mmap, os, select, socket, sys, time
end = time.monotonic() + 3
def reads():
    zeros = os.open("/dev/zero", os.O_RDONLY)
    return lambda: os.read(zeros, 65536)
def receives():
    listener = socket.create_server(("127.0.0.1", 0))
    out = socket.create_connection(listener.getsockname())
    into = listener.accept()[0]
    return lambda: (out.send(bytes(4096)), into.recv(4096))
def touches():
    pages = mmap.mmap(-1, 64 << 20)
    at = iter(range(0, 64 << 20, 4096))
    return lambda: [pages[next(at)] for _ in range(4)]
step = {"0": reads, "1": receives, "2": touches}[sys.argv[1]]()
pause = open(os.pipe()[0])  # nothing comes
while time.monotonic() < end:
    step()
    select.select([pause], [], [], 0.05)
"""


def ranks_that_only_read_receive_or_touch_pages_are_left_alone() -> None:
    for kind in ("0", "1", "2"):
        ended = Ended("--hang-timeout=1s", ranks=2,
                      script=f"exec {PYTHON} -c '{READS}' {kind}")
        ended.check(ended.code == 0 and "HANG" not in ended.text, f"a slow reader, {kind}")


def ranks_that_wait_for_the_terminal_are_left_alone() -> None:
    """Rank 0 asks, and rank 1 waits for it without a move, for twice the limit."""
    leader, terminal = pty.openpty()
    script = "[ $RANK = 1 ] && exec timeout 4 tail -f /dev/null; read answer; echo got $answer"
    command = [DDPRUN, "--standalone", "--nproc-per-node=2", "--hang-timeout=1s", "--no-python",
               "sh", "-c", f"({script}) || true"]
    with subprocess.Popen(command, stdin=terminal, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True) as run:
        os.close(terminal)
        try:
            run.wait(timeout=3)
        except subprocess.TimeoutExpired:
            os.write(leader, b"something\n")
        text = run.communicate(timeout=60)[0]
    os.close(leader)
    if run.returncode != 0 or "got something" not in text or "HANG" in text:
        sys.exit(f"a rank that waits for the terminal: exit code {run.returncode}\n{text}")


def a_killed_child_is_named() -> None:
    script = """
import os, signal
child = os.fork()
if child == 0: signal.pause()
if os.environ["RANK"] == "1": os.kill(child, 9)
signal.pause()
"""
    ended = Ended("--hang-timeout=1s", ranks=2, script=f"exec {PYTHON} -c '{script}'")
    ended.check(ended.code == 114, "ranks that wait for a helper hang")
    named = [line for line in ended.text.splitlines() if "its child " in line]
    ended.check(bool(named), "the helper that was killed is named")
    ended.check(all("rank 1 " in line and "SIGKILL" in line for line in named),
                "and no other one is")


def without_the_option_nothing_is_said() -> None:
    ended = Ended(script="timeout 3 tail -f /dev/null; true")
    ended.check(ended.code == 0 and "warning" not in ended.text, "a long wait")


def the_finish_timeout() -> None:
    ended = Ended("--finish-timeout=1s", script=f'[ $RANK = 0 ] && exit 0; {SLEEP}')
    ended.check(ended.code == 115, "the finish timeout has an exit code of its own")
    ended.check("error [PARTIAL] rank 0 exited with code 0" in ended.text, "the report says why")
    ended.check(len(ended.dumps) == 1, "the stacks are saved first")


def a_time_out_saves_the_stacks_of_the_others() -> None:
    # All ranks run by then.
    ended = Ended(script="[ $RANK = 0 ] && { timeout 1 tail -f /dev/null; "
                         f"echo '{TIMED_OUT}' >&2; exit 1; }}; exec {IN_SHELL} deadlock")
    ended.check(ended.code == 1, "the exit code is that of the rank that timed out")
    ended.check("note [STACKS] 2 ranks: " in ended.text, "those that still run are grouped")
    ended.check(len(ended.dumps) == 1 and "rank 0 " not in ended.dumps[0], "it has no stack")


def another_failure_does_not_wait_for_stacks() -> None:
    ended = Ended(script=f"[ $RANK = 0 ] && {{ echo boom >&2; exit 1; }}; exec {IN_SHELL} deadlock")
    ended.check(ended.code == 1 and not ended.dumps, "no stacks are read")


def stacks_on_demand() -> None:
    """Of a run that continues; over its control socket."""
    with tempfile.TemporaryDirectory() as place:
        environment = dict(os.environ, XDG_RUNTIME_DIR=place)
        command = [DDPRUN, "--standalone", "--nproc-per-node=2", f"--log-dir={place}/logs",
                   "--no-python", STUCK, "deadlock"]
        with subprocess.Popen(command, stderr=subprocess.DEVNULL, env=environment) as run:
            deadline = time.monotonic() + 20
            text = ""
            while "2 ranks: " not in text and time.monotonic() < deadline:
                done = subprocess.run([DDPRUN, "stacks", str(run.pid)], capture_output=True,
                                      text=True, env=environment, timeout=20, check=False)
                text = done.stdout
            run.terminate()
        if "2 ranks: " not in text or "/logs/" not in text or "stacks-" not in text:
            sys.exit("ddprun stacks: " + text + done.stderr)


def without_py_spy_a_rank_that_ignores_sigterm_writes_its_stacks() -> None:
    if shutil.which("py-spy") is not None:
        print("py-spy is there: the fault handler is not asked")
        return
    python = f"exec {PYTHON} -c"
    ended = Ended("--hang-timeout=1s", "--shutdown-timeout=1", ranks=2,
                  script=f"{python} '{IGNORES_SIGTERM}{PYTHON_LOCK}'")
    ended.check(ended.code == 114, "a hang stays the cause")
    ended.check(ended.text.count("in load_batch") == 2, "each rank writes its Python stack")
    ended.check("note [STACKS] ranks 0, 1 " in ended.text, "it is told")
    ended.check("core dumped" not in ended.text, "there is no core")
    failed = Ended("--shutdown-timeout=1", ranks=2, script="[ $RANK = 0 ] && "
                   f"{{ timeout 1 tail -f /dev/null; exit 7; }}; {python} "
                   f"'{IGNORES_SIGTERM}{PYTHON_LOCK}'")
    failed.check(failed.code == 7 and "in load_batch" in failed.text, "so it is after a failure")
    failed.check("rank 0 " in failed.text and "SIGABRT" not in failed.text, "nor is it blamed")


def who_obeys_sigterm_or_is_no_python_is_not_aborted() -> None:
    saves = "import signal, sys; signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))"
    waits = f"exec {PYTHON} -c '{saves}; signal.pause(); signal.pause()'"
    ended = Ended("--hang-timeout=1s", script=f'trap "" TERM; [ $RANK = 0 ] && {waits}; {SLEEP}')
    ended.check(ended.code == 114 and "STACKS" not in ended.text, "no rank is asked")


def python_stacks() -> None:
    if shutil.which("py-spy") is None:
        print("no py-spy: Python stacks are not tested")
        return
    ended = Ended("--hang-timeout=1s", ranks=2,
                  script=f"exec {PYTHON} -c '{PYTHON_LOCK}'")
    named = "2 ranks: load_batch (<string>:6)" in ended.text
    ended.check(named or DENIED in ended.text, "ranks are grouped by their Python place")


def main() -> None:
    os.environ.pop("DDPRUN_HANG_TIMEOUT", None)
    for case in (the_hang_timeout, a_stopped_rank_is_the_odd_one, a_hang_takes_a_restart,
                 ranks_that_compute_are_left_alone, ranks_that_write_are_left_alone,
                 ranks_that_only_read_receive_or_touch_pages_are_left_alone,
                 ranks_that_wait_for_the_terminal_are_left_alone, a_killed_child_is_named,
                 without_the_option_nothing_is_said, the_finish_timeout,
                 a_time_out_saves_the_stacks_of_the_others,
                 another_failure_does_not_wait_for_stacks, stacks_on_demand, python_stacks,
                 without_py_spy_a_rank_that_ignores_sigterm_writes_its_stacks,
                 who_obeys_sigterm_or_is_no_python_is_not_aborted):
        case()
        print(case.__name__.replace("_", " "))


if __name__ == "__main__":
    main()
