"""Runs the program ddprun as a child of this process, and tells what failed first."""

import ctypes
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import threading

from ddprun._where import program

_PR_SET_PDEATHSIG = 1
_PASSED = [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1,
           signal.SIGUSR2]


class Ended:
    """How a run ended: `code`; `failure`, the first one as in result.json, or None; `files`, the
    directory of the run's log, or None; `signal`, which this process got meanwhile, or 0."""

    def __init__(self, code, result, files, got):
        self.code = code
        self.text = (result or {}).get("text", "")
        self.failure = ((result or {}).get("failure") or {}).get("first")
        self.files = files
        self.signal = got


def run(words, log_dir, then):
    """Runs `ddprun words...` until it ends, and returns then(Ended), during which the files of the
    run are there. `log_dir`: which the words name; None: none, and a success leaves no file."""
    path = program()
    if path is None:
        raise FileNotFoundError("the program ddprun is not installed with this module, and not on "
                                "PATH")
    own = None if log_dir else tempfile.mkdtemp(prefix="ddprun_")
    before = _runs(log_dir or own)
    code, got = _call([path] + ([f"--log-dir={own}"] if own else []) + list(words))
    files = next(iter(_runs(log_dir or own) - before), None)
    try:
        return then(Ended(code, _result(files), files, got))
    finally:
        if own and (code == 0 or files is None):
            shutil.rmtree(own, ignore_errors=True)


def _runs(folder):
    path = pathlib.Path(folder)
    return {one.parent for one in path.glob("*/result.json")} if path.is_dir() else set()


def _result(files):
    try:
        return json.loads((files / "result.json").read_text()) if files else None
    except (OSError, ValueError):
        return None


def _call(command):
    environment = dict(os.environ)
    environment.setdefault("PYTHON_EXEC", sys.executable)
    libc = ctypes.CDLL(None, use_errno=True)
    parent = os.getpid()

    def die_with_parent():  # as torchrun's ranks do, whose agent is in this process
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != parent:
            os._exit(128 + signal.SIGTERM)

    sys.stdout.flush()
    sys.stderr.flush()
    got = []
    with subprocess.Popen(command, env=environment, preexec_fn=die_with_parent) as child:
        restored = _pass_signals(child, got)
        try:
            code = child.wait()
        finally:
            for number, handler in restored:
                signal.signal(number, handler)
    return (code if code >= 0 else 128 - code), (got[0] if got else 0)


def _pass_signals(child, got):
    """Signals of this process are for the run. What was ignored stays so."""
    if threading.current_thread() is not threading.main_thread():
        return []

    def handle(number, _frame):
        got.append(number)
        if number in (signal.SIGINT, signal.SIGQUIT) and _is_in_foreground():
            return  # the terminal has sent it to the child, too
        child.send_signal(number)

    restored = []
    for number in _PASSED:
        before = signal.getsignal(number)
        if before in (signal.SIG_IGN, None):
            continue
        restored.append((number, before))
        signal.signal(number, handle)
    return restored


def _is_in_foreground():
    try:
        with open("/dev/tty", "rb") as terminal:
            return os.tcgetpgrp(terminal.fileno()) == os.getpgrp()
    except OSError:
        return False
