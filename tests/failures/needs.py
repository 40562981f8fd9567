"""What some cases need of the machine, and why they are skipped without it."""

import contextlib
import os
import pathlib
import subprocess
import uuid

MEMORY = pathlib.Path("/sys/fs/cgroup/memory")
MEMORY_LIMIT = 48 << 20
# A limit for the worker, and one for all of ddprun, which a sanitizer's memory exceeds.
MEMORY_NEEDS = ("memory", "plain memory")


def missing(need: str) -> str:
    """Why the need is not met; empty: it is."""
    if not need:
        return ""
    if os.geteuid() != 0:
        return "needs root"
    if need == "mount":
        works = subprocess.run(["unshare", "--mount", "true"], stderr=subprocess.DEVNULL)
        return "" if works.returncode == 0 else "no mount namespaces"
    if need == "plain memory" and os.environ.get("DDPRUN_TEST_SANITIZED"):
        return "a sanitizer needs the memory itself"
    if need in MEMORY_NEEDS and not os.access(MEMORY / "memory.limit_in_bytes", os.W_OK):
        return "no memory cgroup of version 1"
    return ""


@contextlib.contextmanager
def provided(need: str):
    """The folder of a memory cgroup with a limit, for a need of memory; else an empty text."""
    if need not in MEMORY_NEEDS:
        yield ""
        return
    folder = MEMORY / f"ddprun-failures-{os.getpid()}-{uuid.uuid4().hex[:8]}"
    folder.mkdir()
    try:
        (folder / "memory.limit_in_bytes").write_text(str(MEMORY_LIMIT))
        yield str(folder)
    finally:
        with contextlib.suppress(OSError):
            folder.rmdir()
