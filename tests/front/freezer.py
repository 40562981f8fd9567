"""State D at will: a cgroup of the freezer, version 1, whose processes are in uninterruptible sleep
while it is frozen."""

import os
import pathlib
import uuid

from processes_of_run import wait_for

FOLDER = pathlib.Path("/sys/fs/cgroup/freezer")


class Freezer:
    """Use in a `with` statement: at its end the group is thawed, emptied and removed."""

    def __init__(self, test):
        if os.geteuid() != 0 or not os.access(FOLDER / "cgroup.procs", os.W_OK):
            test.skipTest("needs root and the freezer of cgroup v1")
        self.group = FOLDER / ("ddprun-test-" + uuid.uuid4().hex)
        # What a worker's shell does to enter; `$$` is its pid.
        self.enter = f"echo $$$$ > {self.group}/cgroup.procs"

    def __enter__(self):
        self.group.mkdir()
        return self

    def __exit__(self, *_):
        self.thaw()
        wait_for(lambda: not (self.group / "cgroup.procs").read_text(), "end")
        self.group.rmdir()

    def freeze(self):
        (self.group / "freezer.state").write_text("FROZEN")
        wait_for(lambda: (self.group / "freezer.state").read_text() == "FROZEN\n", "frost")

    def thaw(self):
        (self.group / "freezer.state").write_text("THAWED")
