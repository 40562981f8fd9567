"""Debian's slurmctld, slurmd and munged with a configuration, key and folder of their own."""

import os
import pathlib
import re
import subprocess

from private_machine import HOSTS, HUNG_SECONDS, run, wait_for

NODES = ("node01", "node02")
CONFIG = """
ClusterName=test
SlurmctldHost=head
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool.%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.%n.pid
ProctrackType=proctrack/pgid
JobAcctGatherType=jobacct_gather/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerType=sched/builtin
SchedulerParameters=sched_interval=1,batch_sched_delay=0
SlurmdParameters=config_overrides
ReturnToService=2
KillWait=2
GresTypes=gpu
NodeName=node01 NodeAddr={node01} NodeHostname=head Port=7001 CPUs=8 RealMemory=100 Gres=gpu:2
NodeName=node02 NodeAddr={node02} NodeHostname=head Port=7002 CPUs=8 RealMemory=100 Gres=gpu:2
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""
# Devices that every machine has: Slurm counts files, and ddprun what Slurm counted.
GPUS = "Name=gpu File=/dev/null\nName=gpu File=/dev/zero\n"


def slurm_version() -> int:
    """Of "slurm-wlm 22.05.8" the 22."""
    version = subprocess.run(["slurmd", "-V"], capture_output=True, text=True,
                             timeout=HUNG_SECONDS).stdout
    return int(re.search(r"(\d+)\.", version)[1])


class Cluster:
    """Runs until the namespaces end; every command has a deadline."""

    def __init__(self, folder: pathlib.Path):
        self.folder = folder
        self.daemons = {}
        for name in ("state", *(f"spool.{node}" for node in NODES)):
            (folder / name).mkdir()
        config = folder / "slurm.conf"
        config.write_text(CONFIG.format(folder=folder, **HOSTS))
        (folder / "gres.conf").write_text(GPUS)
        if slurm_version() >= 24:  # before, its daemons did without unless asked
            (folder / "cgroup.conf").write_text("CgroupPlugin=disabled\n")
        os.environ["SLURM_CONF"] = str(config)
        self.start_munge()
        self.start("slurmctld", "slurmctld", "-D", "-i")
        for node in NODES:
            self.start(node, "slurmd", "-D", "-N", node)
        wait_for("both nodes idle", self.is_idle)

    def start_munge(self) -> None:
        key = self.folder / "munge.key"
        key.write_bytes(os.urandom(1024))
        key.chmod(0o600)
        files = {"socket": "munge.socket", "key-file": "munge.key", "pid-file": "munge.pid",
                 "seed-file": "munge.seed", "log-file": "munge.file-log"}
        self.start("munge", "munged", "--foreground", "--force",
                   *(f"--{option}={self.folder / name}" for option, name in files.items()))
        wait_for("munged's socket", (self.folder / "munge.socket").exists)
        # Where programs that use libmunge look for it.
        run("mount", "-t", "tmpfs", "-o", "mode=755", "none", "/run")
        os.mkdir("/run/munge")
        os.symlink(self.folder / "munge.socket", "/run/munge/munge.socket.2")

    def start(self, name: str, *words: str) -> None:
        log = open(self.folder / f"{name}.log", "wb")
        self.daemons[name] = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=log,
                                              stderr=subprocess.STDOUT)

    def is_idle(self) -> bool:
        for name, daemon in self.daemons.items():
            if daemon.poll() is not None:
                raise RuntimeError(f"{name} ended with {daemon.returncode}\n{self.logs()}")
        states = subprocess.run(["sinfo", "--noheader", "--Node", "--format=%T"], text=True,
                                capture_output=True, timeout=HUNG_SECONDS).stdout.split()
        return states == ["idle"] * len(NODES)

    def logs(self) -> str:
        text = ""
        for name in self.daemons:
            lines = (self.folder / f"{name}.log").read_text(errors="replace").splitlines()
            text += f"--- {name}\n" + "\n".join(lines[-15:]) + "\n"
        return text
