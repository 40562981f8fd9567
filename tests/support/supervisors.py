"""The processes of one ddprun: the front, which was started, below it the guard and the agent."""

import os
import select
import time


def stat_of(pid: int) -> tuple[str, str, int]:
    """Name, state letter and parent of a process; empty and 0 when it is gone."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            head, _, tail = file.read().rpartition(")")
    except OSError:
        return "", "", 0
    state, parent = tail.split()[:2]
    return head.partition("(")[2], state, int(parent)


def children_of(pid: int) -> list[int]:
    """Neither zombies nor gone."""
    found = []
    for entry in filter(str.isdigit, os.listdir("/proc")):
        _, state, parent = stat_of(int(entry))
        if parent == pid and state not in ("", "Z", "X"):
            found.append(int(entry))
    return found


def supervisors_of(pid: int) -> tuple[int, int, int]:
    """Front, guard and agent, as soon as they are there."""
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        for child in children_of(pid):
            if stat_of(child)[0] == "ddguard" and (agents := children_of(child)):
                return pid, child, agents[0]
        select.select([], [], [], 0.005)
    raise TimeoutError(f"process {pid} has no guard and no agent")


def agent_of(pid: int) -> int:
    """The process that was ddprun's only one, for a signal that the front would forward or that
    cannot be caught. Another launcher has no front: itself."""
    return supervisors_of(pid)[2] if stat_of(pid)[0] == "ddprun" else pid
