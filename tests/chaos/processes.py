"""Processes started by a case, found in /proc by a marker in their environment."""

import os
import pathlib
import signal


def is_alive(pid: int) -> bool:
    """Neither exited nor a zombie."""
    return state(pid) not in ("", "Z", "X")


def state(pid: int) -> str:
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (OSError, IndexError):
        return ""


def with_mark(mark: str) -> list[int]:
    """Running processes, other than this one, with `NAME=value` in their environment."""
    found = []
    for entry in os.listdir("/proc"):
        if not entry.isdigit() or int(entry) == os.getpid():
            continue
        try:
            words = pathlib.Path(f"/proc/{entry}/environ").read_bytes().split(b"\0")
        except OSError:
            continue
        if mark.encode() in words and is_alive(int(entry)):
            found.append(int(entry))
    return found


def kill(pid: int, number: int = signal.SIGKILL) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass


def listens(pid: int, port: int) -> bool:
    """Whether a process in the network namespace of `pid` listens on `port`."""
    for table in ("tcp", "tcp6"):
        try:
            lines = pathlib.Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]
        except OSError:
            continue
        for line in lines:
            fields = line.split()
            if fields[3] == "0A" and int(fields[1].rpartition(":")[2], 16) == port:
                return True
    return False


def holds_listener(pid: int, port: int) -> bool:
    """Whether this process itself listens on `port`."""
    try:
        held = {os.readlink(link) for link in pathlib.Path(f"/proc/{pid}/fd").iterdir()}
        lines = [line for table in ("tcp", "tcp6")
                 for line in pathlib.Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]]
    except OSError:
        return False
    return any(fields[3] == "0A" and int(fields[1].rpartition(":")[2], 16) == port
               and f"socket:[{fields[9]}]" in held for fields in map(str.split, lines))


def describe(pid: int) -> str:
    try:
        command = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
        return f"pid {pid} state {state(pid)}: {command[:300]}"
    except OSError:
        return f"pid {pid} is gone"
