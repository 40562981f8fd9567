"""What the runner does to a case from outside, once its workers have met."""

import os
import pathlib
import select
import signal
import time

import processes
import supervisors

WAIT_SECONDS = 20
OF_DDPRUN = ("kill_front", "kill_guard", "kill_agent")  # what only ddprun has


class Failed(Exception):
    """The case did not come to the point where its fault is injected."""


def until(condition, seconds: float = WAIT_SECONDS, required: bool = True):
    deadline = time.monotonic() + seconds
    while True:
        found = condition()
        if found:
            return found
        if time.monotonic() > deadline:
            if not required:
                return found
            raise Failed("the case did not get ready")
        select.select([], [], [], 0.005)


def await_ranks(running, name: str = "here", in_round: int = 1) -> None:
    ranks = range(running.case.ranks * running.case.nodes)
    for rank in ranks:
        until(lambda rank=rank: (running.folder / f"{name}.{in_round}.{rank}").exists())


def variable(pid: int, name: str) -> str:
    try:
        words = pathlib.Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return ""
    found = [word for word in words if word.startswith(name.encode() + b"=")]
    return found[0].partition(b"=")[2].decode() if found else ""


def worker(running, rank: int) -> int:
    """The pid of a rank: the process with its RANK whose parent has none."""
    def find():
        pids = [pid for pid in processes.with_mark(running.mark)
                if variable(pid, "RANK") == str(rank)]
        return next((pid for pid in pids if parent(pid) not in pids), 0)
    return until(find)


def parent(pid: int) -> int:
    try:
        return int(pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 0


def kill_worker(running) -> None:
    await_ranks(running)
    processes.kill(worker(running, running.case.culprit), signal.SIGKILL)


def segv_worker(running) -> None:
    await_ranks(running)
    processes.kill(worker(running, 1), signal.SIGSEGV)


def term_worker(running) -> None:
    await_ranks(running)
    processes.kill(worker(running, 1), signal.SIGTERM)


def stop_worker(running) -> None:
    """Stops the culprit, and says so in a note."""
    await_ranks(running)
    processes.kill(worker(running, running.case.culprit), signal.SIGSTOP)
    note(running, "stopped")


def freeze(running) -> None:
    """The rank that is in the case's cgroup cannot die from now on."""
    until(lambda: list(running.folder.glob("in.*")))
    group = pathlib.Path(running.cgroup)
    (group / "freezer.state").write_text("FROZEN")
    until(lambda: (group / "freezer.state").read_text() == "FROZEN\n")
    (running.folder / "frost").touch()


def note(running, name: str, rank: int = 0) -> None:
    (running.folder / f"{name}.1.{rank}").touch()


def send(running, number: int) -> None:
    await_ranks(running)
    os.kill(running.nodes[0].pid, number)


def kill_front(running) -> None:
    send(running, signal.SIGKILL)


def kill_guard(running) -> None:
    await_ranks(running)
    processes.kill(supervisors.supervisors_of(running.nodes[0].pid)[1])


def kill_agent(running) -> None:
    await_ranks(running)
    processes.kill(supervisors.agent_of(running.nodes[0].pid))


def kill_second_node(running) -> None:
    await_ranks(running)
    processes.kill(running.nodes[1].pid)


def stop_and_continue(running) -> None:
    """A rank that was stopped for a moment, as by a debugger."""
    await_ranks(running)
    pid = worker(running, 1)
    processes.kill(pid, signal.SIGSTOP)
    until(lambda: processes.state(pid) == "T")
    processes.kill(pid, signal.SIGCONT)
    note(running, "continued")


def interrupt(running) -> None:
    send(running, signal.SIGINT)


def terminate_traps(running) -> None:
    await_ranks(running, "set")
    send(running, signal.SIGTERM)


def terminate(running) -> None:
    send(running, signal.SIGTERM)


def hang_up(running) -> None:
    send(running, signal.SIGHUP)


def usr1(running) -> None:
    await_ranks(running, "set")
    send(running, signal.SIGUSR1)
