"""ddprun under a real mpirun of Open MPI: one ddprun on each host, several refused.

Usage: openmpi_test.py DDPRUN
"""

import os
import re
import shutil
import subprocess
import sys

from cases import HERE, WORKER, Case, expect, expect_in, finish, run_all
from private_machine import HUNG_SECONDS, enter, wait_for

MPIRUN = ("mpirun", "--allow-run-as-root", "--oversubscribe")
SHELL = "remote_shell.sh"
REMOTE = ("--mca", "plm_rsh_agent", SHELL, "--mca", "plm_ssh_agent", SHELL)  # of Open MPI 4, 5


def one_host(case: Case) -> None:
    """mpirun -N 1 ddprun prog on one host is a run of one node."""
    run = case.start(*MPIRUN, "-N", "1", case.ddprun, WORKER)
    (note,) = case.met(1)
    case.let_workers_finish()
    finish(run)
    expect(note["WORLD_SIZE"] == "1", f"{note}")


def other_hosts(case: Case) -> None:
    """mpirun -N 1 ddprun prog on two other hosts is one world, ranks as mpirun's."""
    if major_version() < 5:
        two_nodes(case, "node01,node02", "node01")
        return
    # Open MPI 5 does not tell which hosts they are, only how many.
    words = (*MPIRUN, *REMOTE, "--host", "node01,node02", "-N", "1", case.ddprun)
    expect_in("--rdzv-endpoint=HOST", refusal(case, *words, WORKER))
    run = case.start(*words, "--rdzv-backend=c10d", "--rdzv-endpoint=node01:29400", WORKER)
    case.met(2)
    case.let_workers_finish()
    finish(run)


def own_host(case: Case) -> None:
    """The same where mpirun's own host is one of the two."""
    two_nodes(case, "head,node02", "(head|10[.]77[.]0[.]1)")


def two_nodes(case: Case, hosts: str, root: str) -> None:
    run = case.start(*MPIRUN, *REMOTE, "--host", hosts, "-N", "1", case.ddprun,
                     "--nproc-per-node=2", WORKER)
    found = case.met(4)
    case.let_workers_finish()
    output = finish(run)
    expect([note["GROUP_RANK"] for note in found] == ["0", "0", "1", "1"], f"{found}")
    expect([note["CHAOS_AGENT"] for note in found] == ["0", "0", "1", "1"], f"{found}")
    expect(re.search(f"2 nodes.* rendezvous at {root}:", output) is not None, output)


def refusal(case: Case, *words: str) -> str:
    """What is said; mpirun ends with 2 as its processes do, or with a 1 of its own."""
    run = case.start(*words)
    output = run.communicate(timeout=HUNG_SECONDS)[0]
    expect(run.returncode in (1, 2), f"exit code {run.returncode}:\n{output}")
    return output


def several_processes(case: Case) -> None:
    """Several processes on a host are refused with what starts one on each."""
    expect_in("mpirun -N 1 ddprun", refusal(case, *MPIRUN, "-n", "3", case.ddprun, WORKER))
    case.let_workers_finish()
    run = case.start(*MPIRUN, "-n", "3", case.ddprun, "--standalone", WORKER)
    expect(len(case.met(3)) == 3, "three runs on purpose")
    finish(run)


def stopped(case: Case) -> None:
    """SIGTERM to mpirun leaves no worker."""
    run = case.start(*MPIRUN, *REMOTE, "--host", "head,node02", "-N", "1", case.ddprun, WORKER)
    found = case.met(2)
    run.terminate()
    run.communicate(timeout=HUNG_SECONDS)
    wait_for("no worker left", lambda: not any(os.path.exists(f"/proc/{note['pid']}")
                                               for note in found))


def major_version() -> int:
    """Of "mpirun (Open MPI) 4.1.4" the 4."""
    text = subprocess.run(["mpirun", "--version"], capture_output=True, text=True,
                          timeout=HUNG_SECONDS)
    return int(re.search(r"(\d+)[.]", text.stdout)[1])


CASES = (one_host, other_hosts, own_host, several_processes, stopped)


def main() -> int:
    folder = enter(["mpirun"])
    ddprun = os.path.realpath(sys.argv[1])
    shutil.copy(HERE / SHELL, folder)  # mpirun cuts a path at its blanks
    os.environ["PATH"] += f":{folder}"
    os.environ["TMPDIR"] = str(folder)  # where Open MPI has its own files
    # Version 4 writes the machine's topology to a place in memory that it takes for free. One time
    # in two hundred it is not, and orted ends with SIGSEGV.
    os.environ["OMPI_MCA_rtc_hwloc_vmhole"] = "none"
    return run_all(CASES, lambda name: Case(folder / name, ddprun))


if __name__ == "__main__":
    sys.exit(main())
