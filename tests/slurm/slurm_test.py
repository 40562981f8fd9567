"""ddprun under a real Slurm of two nodes: `srun ddprun prog` alone, and what is refused.

Usage: slurm_test.py DDPRUN
"""

import os
import re
import shlex
import signal
import socket
import subprocess
import sys

from cases import WORKER, Case, expect, expect_in, finish, run_all
from cluster import Cluster
from private_machine import HUNG_SECONDS, enter, wait_for
from sentences import kForEachGpu, kNotBySrun, kPortInUse, kSecretHasAtLeast
from supervisors import stat_of

RUN_ID = "TORCHELASTIC_RUN_ID"
ONE_EACH = ("--nodes=2", "--ntasks-per-node=1")


def two_nodes(case: Case) -> None:
    """srun ddprun prog on two nodes is one world, ranks in the order of the nodes."""
    run = case.start("srun", *ONE_EACH, case.ddprun, WORKER)
    first, second = case.met(2)
    case.let_workers_finish()
    output = finish(run)
    places = (first["CHAOS_AGENT"], second["CHAOS_AGENT"])
    expect(places == ("node01", "node02"), f"{first}{second}")
    for note, rank in ((first, "0"), (second, "1")):
        expect((note["RANK"], note["GROUP_RANK"]) == (rank, rank), f"ranks: {note}")
        expect(note["WORLD_SIZE"] == note["GROUP_WORLD_SIZE"] == "2", f"sizes: {note}")
        expect(re.fullmatch(r"\d+\.0", note[RUN_ID]) is not None, f"run id: {note}")
    expect_in("2 nodes (node[01-02]) rendezvous at node01:", output)


def a_worker_for_each_gpu(case: Case) -> None:
    """A node that was given two GPUs runs two workers."""
    run = case.start("srun", *ONE_EACH, "--gpus-per-node=2", case.ddprun, WORKER)
    found = case.met(4)
    case.let_workers_finish()
    expect_in("2 workers" + kForEachGpu, finish(run))
    expect([note["LOCAL_RANK"] for note in found] == ["0", "1", "0", "1"], f"{found}")


def one_node(case: Case) -> None:
    """A step of one node is a run of one node."""
    run = case.start("srun", "--nodes=1", "--ntasks=1", case.ddprun, WORKER)
    (note,) = case.met(1)
    case.let_workers_finish()
    finish(run)
    expect(note["WORLD_SIZE"] == "1", f"{note}")


def several_tasks(case: Case) -> None:
    """Several tasks on a node are refused, and the srun of the sentence then does it."""
    output = case.run("srun", "--nodes=2", "--ntasks=4", case.ddprun, WORKER, code=2)
    remedy = re.search(r"srun (--ntasks=2 --ntasks-per-node=1) ddprun", output)
    expect(remedy is not None, f"no remedy:\n{output}")
    script = f"srun {remedy[1]} {case.shell_command}"
    # In a job with more tasks srun ignores --ntasks-per-node=1 alone.
    run = case.start("salloc", "--nodes=2", "--ntasks=6", "--ntasks-per-node=3", "sh", "-c", script)
    case.met(2)
    case.let_workers_finish()
    finish(run)


def in_pty_shell(case: Case, script: str, *options: str) -> str:
    """The output of a shell script on a terminal of srun's, whose job gives each node two tasks."""
    # Only the first task has the terminal; a shell in the others finds no input and ends.
    only_there = f'test "$SLURM_PROCID" = 0 || exit 0; {script}'
    command = ["srun", *options, "--pty", "sh", "-c", only_there]
    output = case.folder / "typescript"
    # srun --pty wants a terminal of its own, which script(1) gives it.
    case.run("script", "--quiet", "--return", f"--command={shlex.join(command)}", str(output))
    return output.read_text()


def pty_shell(case: Case) -> None:
    """A shell of srun --pty runs ddprun on its node, although its step has several tasks."""
    case.let_workers_finish()
    output = in_pty_shell(case, f"{case.shell_command}; echo code=$?", "--nodes=1", "--ntasks=2")
    (note,) = case.met(1)
    expect(note["WORLD_SIZE"] == "1", f"{note}")
    expect_in("code=0", output)


def pty_shell_of_two_nodes(case: Case) -> None:
    """In a shell of srun --pty on one of two nodes ddprun names what runs on both, or here."""
    output = in_pty_shell(case, f"{case.shell_command}; true", *ONE_EACH)
    expect_in("srun --overlap --ntasks=2 --ntasks-per-node=1 ddprun", output)
    expect_in("--standalone", output)


def batch(case: Case, script: str, *options: str, code: int = 0) -> str:
    """The output of a batch script of two nodes."""
    path = case.folder / "script.sh"
    path.write_text("#!/bin/sh\n" + script)
    output = case.folder / "output"
    case.run("sbatch", "--wait", "--nodes=2", f"--output={output}", *options, str(path), code=code)
    return output.read_text()


def batch_script(case: Case) -> None:
    """A batch script's own ddprun is no world of one by mistake; --standalone is one on purpose."""
    output = batch(case, f"{case.shell_command}\n", code=2)
    expect_in(kNotBySrun, output)
    expect_in("srun --ntasks=2 --ntasks-per-node=1 ddprun", output)
    case.let_workers_finish()
    batch(case, f"exec {shlex.quote(case.ddprun)} --standalone {shlex.quote(WORKER)}\n")
    (note,) = case.met(1)
    expect(note["WORLD_SIZE"] == "1", f"{note}")


def batch_from_a_step(case: Case) -> None:
    """A job submitted from inside a step does not take that step's variables for its own."""
    script = case.folder / "script.sh"
    script.write_text(f"#!/bin/sh\n{case.shell_command}\n")
    output = case.folder / "output"
    case.run("srun", "--nodes=1", "--ntasks=1", "sbatch", "--wait", "--nodes=2",
             f"--output={output}", str(script), code=2)
    expect_in("of 2 nodes (node[01-02]), but " + kNotBySrun, output.read_text())


def two_steps_at_once(case: Case) -> None:
    """Two steps of one job at the same time are two runs at two ports."""
    step = f"srun --exact --nodes=2 --ntasks=2 --ntasks-per-node=1 {case.shell_command}"
    run = case.start("salloc", "--nodes=2", "--ntasks-per-node=2", "sh", "-c",
                     f"{step} & first=$!; {step}; second=$?; wait $first && exit $second")
    found = case.met(4)
    case.let_workers_finish()
    output = finish(run)
    expect([note["RANK"] for note in found] == ["0", "1", "0", "1"], f"{found}")
    expect(len({note[RUN_ID] for note in found}) == 2, f"run ids: {found}")
    expect(len({note["token"] for note in found}) == 2, f"merged runs: {found}")
    ports = re.findall(r"rendezvous at node01:(\d+)", output)
    expect(len(set(ports)) == 2, f"ports {ports}:\n{output}")


def cancelled(case: Case) -> None:
    """scancel leaves no worker and no ddprun."""
    run = case.start("srun", *ONE_EACH, case.ddprun, WORKER)
    found = case.met(2)
    subprocess.run(["scancel", found[0][RUN_ID].partition(".")[0]], check=True,
                   timeout=HUNG_SECONDS)
    run.communicate(timeout=HUNG_SECONDS)
    expect(run.returncode != 0, "srun says that a cancelled job succeeded")
    wait_for("no worker left", lambda: not any(os.path.exists(f"/proc/{note['pid']}")
                                               for note in found))
    wait_for("no ddprun left", lambda: not running(case.ddprun))


def failure(case: Case) -> None:
    """A worker's exit code is srun's, and both nodes end."""
    run = case.start("srun", *ONE_EACH, case.ddprun, WORKER)
    case.met(2)
    (case.folder / "part").write_text("7")
    (case.folder / "part").rename(case.folder / "exit.1.1")  # a worker may look at any time
    output = finish(run, 7)
    expect_in("rank 1", output)
    wait_for("no ddprun left", lambda: not running(case.ddprun))


def lost_node(case: Case) -> None:
    """With --nnodes=1:2 the first node continues alone when the second is lost."""
    run = case.start("srun", "--no-kill", *ONE_EACH, case.ddprun, "--nnodes=1:2", WORKER)
    case.met(2)
    found = [int(pid) for pid in running(case.ddprun)]
    fronts = {pid: environment_of(pid) for pid in found if stat_of(pid)[2] not in found}
    (second,) = (pid for pid, text in fronts.items() if "SLURMD_NODENAME=node02" in text)
    os.kill(second, signal.SIGKILL)
    (alone,) = (note for note in case.met(3) if note["WORLD_SIZE"] == "1")
    expect(alone["CHAOS_AGENT"] == "node01", f"{alone}")
    case.let_workers_finish()
    finish(run, 137)  # of the second node's task


def taken_port(case: Case) -> None:
    """A port of the job's that is in use is one sentence, and srun can end the other node."""
    config = subprocess.run(["scontrol", "show", "config"], capture_output=True, text=True,
                            timeout=HUNG_SECONDS).stdout
    job = int(re.search(r"NEXT_JOB_ID\s*=\s*(\d+)", config)[1])
    port = 21000 + job * 61 % 7993
    with socket.create_server(("", port)):
        run = case.start("srun", "--kill-on-bad-exit=1", *ONE_EACH, case.ddprun, WORKER)
        output = run.communicate(timeout=HUNG_SECONDS)[0]
    expect(run.returncode != 0, output)  # the largest code: 1 of the first, 143 of the second
    expect(re.search(rf"NET-PORT.*:{port}: {kPortInUse}", output) is not None, output)
    wait_for("no ddprun left", lambda: not running(case.ddprun))


NEW = "head -c 32 /dev/urandom | base64"
MUNGE = f"{NEW} | munge --restrict-uid=$(id -u)"


def secret_by_munge(case: Case) -> None:
    """A step has a secret that srun brings to each node as a credential of munge."""
    step = f"srun {shlex.join(ONE_EACH)} {shlex.quote(case.ddprun)} --verbose"
    old = "--ttl=1 >old; until unmunge -i old | grep -q Expired; do :; done; cat old"
    for count, script in enumerate((
            f"{MUNGE} | {step} --rdzv-secret-file=- {WORKER}",
            f"DDPRUN_SECRET=$({MUNGE}) {step} {WORKER}",
            f"{MUNGE} {old} | {step} --rdzv-secret-file=- {WORKER}")):
        run = case.start("sh", "-c", script)
        case.met(2 * (count + 1))
        case.let_workers_finish()
        output = finish(run)
        expect(output.count("links: encrypted") == 2, output)


LIBRARY = "library=$(ldconfig -p | awk '/libmunge.so.2 / { print $NF; exit }')"


def without(file: str) -> str:
    """The words before a command for which that file is an empty one."""
    return f"unshare --mount sh -c 'mount --bind /dev/null \"$0\" && exec \"$@\"' {file}"


def weak_credentials(case: Case) -> None:
    """A credential that other users could open, or that is not theirs to open, is no secret."""
    step = f"{shlex.quote(case.ddprun)} --hosts=node01,node02 --node-rank=1"
    for script, code, what in (
            (f"{NEW} | munge", 2, "could be opened by every user; make it with munge --restrict"),
            (f"{NEW} | munge --restrict-uid=1000", 2, "cannot be opened: Unauthorized credential"),
            (f"{MUNGE} --cipher=none", 2, "is not encrypted"),
            (f"echo short | munge --restrict-uid=0", 2, kSecretHasAtLeast),
            (f"{MUNGE} | tr -d 0-9", 2, "cannot be opened: "),
            (f"{MUNGE} --uid=1000", 2, "is of user 1000, and ddprun runs as user 0"),
            (f"{MUNGE} | {without('$library')}", 1, "libmunge.so.2 cannot be loaded"),
            (f"{MUNGE} | {without('/run/munge/munge.socket.2')}", 1,
             "cannot be opened: Invalid file type")):
        last = "" if "unshare" in script else "|"
        line = f"{LIBRARY}; {script} {last} {step} --rdzv-secret-file=- true"
        output = case.run("sh", "-c", line, code=code)
        expect_in(what, output)


def environment_of(pid: int) -> list[str]:
    with open(f"/proc/{pid}/environ") as file:
        return file.read().split("\0")


def running(program: str) -> list[str]:
    """Processes of this program; there are no others than the test's in here."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            found += [pid] if os.readlink(f"/proc/{pid}/exe") == program else []
        except OSError:
            continue  # it has just ended
    return found


CASES = (two_nodes, a_worker_for_each_gpu, one_node, several_tasks, pty_shell,
         pty_shell_of_two_nodes, batch_script, batch_from_a_step, two_steps_at_once, cancelled,
         failure, lost_node, taken_port, secret_by_munge, weak_credentials)


def main() -> int:
    folder = enter(["slurmctld", "slurmd", "munged", "srun", "sbatch", "salloc", "scancel",
                    "sinfo", "script"], needs_root=True)
    ddprun = os.path.realpath(sys.argv[1])
    cluster = Cluster(folder)
    return run_all(CASES, lambda name: Case(folder / name, ddprun), cluster.logs)


if __name__ == "__main__":
    sys.exit(main())
