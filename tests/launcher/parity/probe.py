"""A worker that records what it was given and ends as requested.

PROBE_DIR: where <rank>.<restart count>.json goes. PROBE_FAIL="1:3": rank 1 ends with code 3.
PROBE_KILL="1": rank 1 kills itself. PROBE_UNTIL="2": only while the restart count is below 2.
"""

import contextlib
import json
import os
import resource
import signal
import sys
import threading


def mask(name):
    with open("/proc/self/status", encoding="ascii") as status:
        return next(line.split()[1] for line in status if line.startswith(name))


def ancestors():
    """Parent, its parent, and that one's."""
    found = [os.getppid()]
    while len(found) < 3 and found[-1] > 1:
        with open(f"/proc/{found[-1]}/stat", encoding="utf-8", errors="replace") as stat:
            found.append(int(stat.read().rpartition(")")[2].split()[1]))
    return found


def limits():
    kinds = [name for name in dir(resource) if name.startswith("RLIMIT_")]
    return {name: resource.getrlimit(getattr(resource, name)) for name in kinds}


def out_of_memory_score():
    with open("/proc/self/oom_score_adj", encoding="ascii") as score:
        return score.read().strip()


def facts():
    return {
        "environment": dict(os.environ),
        "argv": sys.argv,
        "python of": os.path.realpath(sys.prefix),
        "interpreter's options": sys.orig_argv[1 : -len(sys.argv)],
        "directory": os.getcwd(),
        "umask": os.umask(0o022),
        "limits": limits(),
        "priority": os.getpriority(os.PRIO_PROCESS, 0),
        "scheduling": os.sched_getscheduler(0),
        "processors": sorted(os.sched_getaffinity(0)),
        "oom_score_adj": out_of_memory_score(),
        "leads its session and group": os.getpid() == os.getsid(0) == os.getpgid(0),
        "ancestors": ancestors(),
        "descriptors": sorted(
            int(name)
            for name in os.listdir("/proc/self/fd")
            if os.path.exists(f"/proc/self/fd/{name}")
        ),
        "stdin": os.readlink("/proc/self/fd/0"),
        "stdout": os.readlink("/proc/self/fd/1"),
        "blocked signals": mask("SigBlk"),
        "ignored signals": mask("SigIgn"),
    }


def write_facts(rank, restart):
    path = f"{os.environ['PROBE_DIR']}/{rank}.{restart}.json"
    with open(path + ".part", "w", encoding="utf-8") as file:
        json.dump(facts(), file)
    os.rename(path + ".part", path)


def wait_for_others(rank, failing, restart):
    """The failing rank continues when all others have written and printed everything."""
    path = f"{os.environ['PROBE_DIR']}/../ready.{restart}"
    with contextlib.suppress(FileExistsError):
        os.mkfifo(path)
    others = int(os.environ["WORLD_SIZE"]) - 1
    if rank != failing:
        with open(path, "wb") as fifo:
            fifo.write(b"x")
    elif others:
        with open(path, "rb") as fifo:
            fifo.read(others)


def main():
    rank = os.environ["RANK"]
    restart = int(os.environ["TORCHELASTIC_RESTART_COUNT"])
    write_facts(rank, restart)
    for number in range(3):
        # One write per line, so that lines of two ranks do not run into each other.
        os.write(1, f"probe-out {rank} {number} a,b\n".encode())
        os.write(2, f"probe-err {rank} {number} needle\n".encode())
    code = os.environ.get("PROBE_FAIL", "")
    failing = code.partition(":")[0] or os.environ.get("PROBE_KILL")
    if failing is None or restart >= int(os.environ.get("PROBE_UNTIL", "1000")):
        return 0
    wait_for_others(rank, failing, restart)
    if rank != failing:
        threading.Event().wait()  # until the launcher stops the survivors
    if code:
        return int(code.partition(":")[2])
    os.kill(os.getpid(), signal.SIGKILL)
    return 0


sys.exit(main())
