"""File systems that stall: one that the kernel freezes (root), and one that a preloaded library
slows down (no privileges). Both are used in a `with` and have `path`, stall() and go_on()."""

import os
import pathlib
import shutil
import subprocess


class FrozenDisk:
    """An ext4 in a file, frozen by fsfreeze: a process that writes to it waits uninterruptibly."""

    ends_while_stalled = False  # the kernel keeps a process with such a thread until the thaw

    def __init__(self, cluster, megabytes: int = 32):
        self.cluster = cluster
        self.bytes = megabytes << 20
        self.image = cluster.folder / "disk.image"
        self.path = cluster.folder / "disk"
        self.environment = {}
        self.is_stalled = False

    def __enter__(self):
        self.path.mkdir()
        with open(self.image, "wb") as image:
            image.truncate(self.bytes)
        run("mkfs.ext4", "-qF", self.image)
        run("mount", "-o", "loop", self.image, self.path)
        return self

    def stall(self):
        run("fsfreeze", "--freeze", self.path)
        self.is_stalled = True

    def go_on(self):
        run("fsfreeze", "--unfreeze", self.path)
        self.is_stalled = False

    def __exit__(self, *error):
        if self.is_stalled:
            self.go_on()
        for agent in self.cluster.agents:  # the case ends with a look at what they said
            if agent.console.is_relative_to(self.path):
                kept = self.cluster.folder / f"{agent.name}.console"
                agent.console = shutil.copyfile(agent.console, kept)
        run("umount", "--lazy", self.path)


class SlowDisk:
    """A folder whose files take as long as a flag exists, for agents started with `environment`."""

    ends_while_stalled = True

    def __init__(self, cluster):
        self.path = cluster.folder / "disk"
        self.flag = pathlib.Path(f"{self.path}.stalled")
        # The runtime of AddressSanitizer wants to be loaded first, and need not be.
        options = f"{os.environ.get('ASAN_OPTIONS', '')}:verify_asan_link_order=0"
        self.environment = {"LD_PRELOAD": cluster.tools.slow_disk, "SLOW_DISK": str(self.path),
                            "ASAN_OPTIONS": options}

    def __enter__(self):
        self.path.mkdir()
        return self

    def stall(self):
        self.flag.touch()

    def go_on(self):
        self.flag.unlink(missing_ok=True)

    def __exit__(self, *error):
        self.go_on()


def run(*words) -> None:
    subprocess.run([str(word) for word in words], check=True)


def missing() -> str:
    """Why FrozenDisk cannot be used here; empty if it can."""
    if os.geteuid() != 0:
        return "only root can freeze a file system"
    for program in ("mkfs.ext4", "mount", "fsfreeze"):
        if shutil.which(program) is None:
            return f"no {program} here"
    return "" if pathlib.Path("/dev/loop-control").exists() else "no loop devices here"
