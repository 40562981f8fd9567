"""What some cases need of the machine, and why they are skipped without it."""

import contextlib
import os
import pathlib
import subprocess
import uuid

MEMORY = pathlib.Path("/sys/fs/cgroup/memory")
MEMORY_LIMIT = 48 << 20


def missing(need: str) -> str:
    """Why the need is not met; empty: it is."""
    if not need:
        return ""
    if os.geteuid() != 0:
        return "needs root"
    if need == "mount":
        works = subprocess.run(["unshare", "--mount", "true"], stderr=subprocess.DEVNULL)
        return "" if works.returncode == 0 else "no mount namespaces"
    if need == "memory" and not os.access(MEMORY / "memory.limit_in_bytes", os.W_OK):
        return "no memory cgroup of version 1"
    return ""


@contextlib.contextmanager
def provided(need: str):
    """The folder of a memory cgroup with a limit, for the need `memory`; else an empty text."""
    if need != "memory":
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
