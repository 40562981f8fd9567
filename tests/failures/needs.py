"""What some cases need of the machine, and why they are skipped without it."""

import contextlib
import os
import pathlib
import select
import shutil
import subprocess
import time
import uuid

MEMORY = pathlib.Path("/sys/fs/cgroup/memory")
FREEZER = pathlib.Path("/sys/fs/cgroup/freezer")
# Another user, whom RLIMIT_NPROC binds, but who may read the programs wherever they are.
USER = ("setpriv", "--reuid=61234", "--inh-caps=+dac_override", "--ambient-caps=+dac_override")
MEMORY_LIMIT = 48 << 20
# A limit for the worker, and one for all of ddprun, which a sanitizer's memory exceeds.
MEMORY_NEEDS = ("memory", "plain memory")


def missing(need: str) -> str:
    """Why the need is not met; empty: it is."""
    if not need:
        return ""
    if need.startswith("program "):
        program = need.partition(" ")[2]
        return "" if shutil.which(program) else f"no {program}"
    if os.geteuid() != 0:
        return "needs root"
    if need == "mount":
        works = subprocess.run(["unshare", "--mount", "true"], stderr=subprocess.DEVNULL)
        return "" if works.returncode == 0 else "no mount namespaces"
    if need == "plain user" and os.environ.get("DDPRUN_TEST_SANITIZED"):
        return "a sanitizer starts a process of its own"
    if need in ("user", "plain user"):
        works = subprocess.run([*USER, "true"], stderr=subprocess.DEVNULL)
        return "" if works.returncode == 0 else "no setpriv with ambient capabilities"
    if need == "freezer" and not os.access(FREEZER / "cgroup.procs", os.W_OK):
        return "no freezer of cgroup version 1"
    if need == "plain memory" and os.environ.get("DDPRUN_TEST_SANITIZED"):
        return "a sanitizer needs the memory itself"
    if need in MEMORY_NEEDS and not os.access(MEMORY / "memory.limit_in_bytes", os.W_OK):
        return "no memory cgroup of version 1"
    return ""


@contextlib.contextmanager
def provided(need: str):
    """The folder of a cgroup for a need of one: with a limit on memory, or a freezer."""
    parent = MEMORY if need in MEMORY_NEEDS else FREEZER if need == "freezer" else None
    if parent is None:
        yield ""
        return
    folder = parent / f"ddprun-failures-{os.getpid()}-{uuid.uuid4().hex[:8]}"
    folder.mkdir()
    try:
        if parent is MEMORY:
            (folder / "memory.limit_in_bytes").write_text(str(MEMORY_LIMIT))
        yield str(folder)
    finally:
        if parent is FREEZER:
            thaw(folder)
        with contextlib.suppress(OSError):
            folder.rmdir()


def thaw(folder: pathlib.Path) -> None:
    """And waits for the end of what was killed in it."""
    if not folder.exists():
        return
    (folder / "freezer.state").write_text("THAWED")
    deadline = time.monotonic() + 10
    while (folder / "cgroup.procs").read_text() and time.monotonic() < deadline:
        select.select([], [], [], 0.005)
