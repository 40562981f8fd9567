"""What a node writes to stalls: its file system, or the reader of its console."""

import os
import re
import signal

import processes
from cases import case, expect
from disks import FrozenDisk, SlowDisk
from harness import Cluster, pause
from sentences import kFirstFailure, kWaitingForNodes

# A node is lost after 3 s of silence; each stall is longer.
CONF = {"keep_alive_interval": "0.2", "keep_alive_max_attempt": "15"}
STALL_SECONDS = float(os.environ.get("DDPRUN_TEST_STALL", "7"))


def on_both(sentence: str):
    """The case on a file system that is frozen, and on one that a library slows down."""
    def register(play):
        case(sentence + ", frozen", "freeze")(lambda cluster: play(cluster, FrozenDisk))
        case(sentence + ", slowed down", "slow disk")(lambda cluster: play(cluster, SlowDisk))
        return play
    return register


def start_both(cluster: Cluster, disk):
    """Two nodes; all that the second one writes is on the disk."""
    # No line matches: the file that stays empty has no write under way when it is closed.
    cluster.flags |= {"nnodes": "2", "tee": "3", "duplicate-stderr-filters": "never"}
    cluster.conf |= CONF
    cluster.environment["CHAOS_CHATTER"] = "100"
    cluster.environment_of["b"] = disk.environment | {
        "TMPDIR": str(disk.path), "TORCHELASTIC_ERROR_FILE": str(disk.path / "error.json")}
    cluster.console_of["b"] = disk.path / "b.console"
    a = cluster.start_root()
    return a, cluster.start("b", log_dir=disk.path)


@on_both("a file system that stalls under a node's console and logs loses no node")
def stalls(cluster: Cluster, open_disk):
    with open_disk(cluster) as disk:
        agents = start_both(cluster, disk)
        one = cluster.wait_for_round(agents)
        disk.stall()
        pause(0.5)  # what was being written when it began
        before = agents[1].console.stat().st_size
        pause(STALL_SECONDS)
        expect(agents[1].console.stat().st_size == before, "the disk did not stall")
        expect(all(agent.is_running() for agent in agents), "a node ended in the stall")
        expect(all(map(processes.is_alive, one.pids.values())), "a worker ended in the stall")
        disk.go_on()
        cluster.finish()
        cluster.end_all(0)
        expect(len(cluster.rounds()) == 1, "the stall cost a round")
        expect("done" in agents[1].text(), "the last line of the node that stalled is missing")


@on_both("a failure while a file system stalls restarts the run after it, and loses no node")
def restart(cluster: Cluster, open_disk):
    cluster.flags["max-restarts"] = "1"
    with open_disk(cluster) as disk:
        a, b = start_both(cluster, disk)
        one = cluster.wait_for_round([a, b])
        disk.stall()
        cluster.fail(one.rank_of(a), one.number, 9)
        cluster.wait_for(lambda: not any(map(processes.is_alive, one.pids_of(b))),
                         "end of the workers on the node that stalls")
        pause(STALL_SECONDS)
        expect(a.is_running() and b.is_running(), "a node ended in the stall")
        disk.go_on()
        two = cluster.wait_for_round([a, b], after=one)
        expect(two.number == one.number + 1 and two.restarts == 1, f"round {two.number}")
        cluster.finish()
        cluster.end_all(0)


@on_both("SIGTERM ends the workers of a node whose file system stalls, and its part of the run")
def stopped(cluster: Cluster, open_disk):
    with open_disk(cluster) as disk:
        a, b = start_both(cluster, disk)
        one = cluster.wait_for_round([a, b])
        disk.stall()
        b.send(signal.SIGTERM)
        cluster.wait_for(lambda: not any(map(processes.is_alive, one.pids_of(b))),
                         "end of the workers on the node that stalls")
        a.end()  # too few nodes are left
        b.send(signal.SIGTERM)  # it waits for its files, and now no longer
        if disk.ends_while_stalled:
            expect(b.end() == 143, "another code than that of SIGTERM")
        disk.go_on()
        expect(b.end() == 143, "another code than that of SIGTERM")


@on_both("a node that is started on a file system that stalls can be stopped")
def not_begun(cluster: Cluster, open_disk):
    cluster.flags |= {"nnodes": "2"}
    with open_disk(cluster) as disk:
        disk.stall()
        cluster.environment_of["b"] = disk.environment | {"TMPDIR": str(disk.path)}
        b = cluster.start("b")
        stop_while_it_waits(cluster, b, disk)


@case("a node whose first round ended while its files were opened records its events", "slow disk")
def given_up_while_it_begins(cluster: Cluster):
    cluster.flags |= {"nnodes": "2"}
    with SlowDisk(cluster) as disk:
        cluster.environment_of["root"] = disk.environment
        a = cluster.start_root(log_dir=disk.path)
        cluster.wait_for_text(a, kWaitingForNodes + "1 of 2")  # it has its log directory
        disk.stall()
        lost = cluster.start("lost")
        cluster.wait_for(lambda: len(waits_of(a, disk)) == 1, "wait for the files of round 1")
        lost.send(signal.SIGKILL)
        lost.end()
        b = cluster.start("b")
        cluster.wait_for(lambda: len(waits_of(a, disk)) == 2, "wait for the files of round 2")
        disk.go_on()
        cluster.wait_for_round([a, b])
        (events,) = disk.path.glob("*/events.jsonl")
        cluster.wait_for(lambda: '"all_running"' in events.read_text(), "event in events.jsonl")
        cluster.finish()
        cluster.end_all(0, lost)


def waits_of(agent, disk) -> list[str]:
    return re.findall(f"waiting for .*{disk.path}: its file system does not respond; "
                      "a stop signal ends the wait", agent.text())


@on_both("a restart that waits for a file system that stalls says so, and one signal ends it")
def restart_waits(cluster: Cluster, open_disk):
    cluster.flags |= {"nnodes": "2", "max-restarts": "1"}
    with open_disk(cluster) as disk:
        cluster.environment_of["b"] = disk.environment
        a, b = cluster.start_root(), cluster.start("b", log_dir=disk.path)
        one = cluster.wait_for_round([a, b])
        disk.stall()
        cluster.fail(one.rank_of(a), one.number, 9)
        stop_while_it_waits(cluster, b, disk)
        a.end()  # too few nodes are left


def stop_while_it_waits(cluster: Cluster, agent, disk):
    cluster.wait_for(lambda: waits_of(agent, disk), "wait for the file system that stalls")
    agent.send(signal.SIGTERM)
    if disk.ends_while_stalled:
        expect(agent.end() == 143, "another code than that of SIGTERM")
    disk.go_on()
    expect(agent.end() == 143, "another code than that of SIGTERM")


@case("a restart whose program lies on a file system that stalls loses no node", "slow disk")
def program_stalls(cluster: Cluster):
    cluster.flags |= {"nnodes": "2", "max-restarts": "1"}
    cluster.conf |= CONF
    with SlowDisk(cluster) as disk:
        python, *arguments = cluster.worker
        (disk.path / "chaos-python").symlink_to(python)
        cluster.worker = ["chaos-python", *arguments]
        cluster.environment["PATH"] = f"{disk.path}:{os.environ['PATH']}"
        cluster.environment_of["b"] = disk.environment
        a, b = cluster.start_root(), cluster.start("b")
        one = cluster.wait_for_round([a, b])
        disk.stall()
        cluster.fail(one.rank_of(a), one.number, 9)
        pause(STALL_SECONDS)
        disk.go_on()
        two = cluster.wait_for_round([a, b], after=one)
        expect(two.number == one.number + 1, f"round {two.number}")
        cluster.finish()
        cluster.end_all(0)


@case("what a worker left and SIGKILL does not end is named after a success", "freeze")
def left_for_good(cluster: Cluster):
    cluster.flags |= {"straggler-timeout": "1"}
    with FrozenDisk(cluster) as disk:
        disk.stall()
        cluster.worker = ["sh", "-c", f"echo > {disk.path}/file &"]
        agent = cluster.start()
        expect(agent.end() == 0, "the run did not succeed")
        expect(re.search(r"warning \[W-UNKILLABLE\] 1 process \(sh\) that rank 0 .* left behind: "
                         "still alive after SIGKILL", agent.text()), "nothing names what is left")
        disk.go_on()


@on_both("a file system that stalls under the log of ddprun-rdzvd delays no node")
def daemon_log(cluster: Cluster, open_disk):
    cluster.flags |= {"nnodes": "2"}
    with open_disk(cluster) as disk:
        cluster.environment_of["rdzvd"] = disk.environment
        cluster.console_of["rdzvd"] = disk.path / "rdzvd.console"
        cluster.start_daemon()
        disk.stall()
        agents = cluster.start_many(2)
        cluster.wait_for_round(agents)  # this is a line of the log
        cluster.finish()
        cluster.end_all(0)
        disk.go_on()
        cluster.wait_for(lambda: "on 2 nodes" in cluster.console_of["rdzvd"].read_text(),
                         "line about the round")
        cluster.stop_daemon(signal.SIGTERM)


@case("a console that is not read for seconds delays no node and gets the whole report at last")
def paused_console(cluster: Cluster):
    cluster.flags |= {"nnodes": "2"}
    cluster.conf |= CONF
    cluster.environment["CHAOS_CHATTER"] = "2000"
    fifo = cluster.folder / "fifo"
    os.mkfifo(fifo)
    reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    cluster.console_of["root"] = fifo
    a = cluster.start_root()
    a.console = cluster.folder / "root.console"
    a.console.touch()
    b = cluster.start("b")
    one = cluster.wait_for_round([a, b])
    pause(STALL_SECONDS)  # meanwhile the worker waits within a line, as under torchrun
    os.kill(one.pids[one.rank_of(a)], signal.SIGKILL)
    expect(b.end() == 137, "another code than the worker's")
    pause(2)
    expect(a.is_running(), "the node did not wait for its console")
    os.set_blocking(reader, True)
    with open(reader, "rb") as console:
        a.console.write_bytes(console.read())
    expect(a.end() == 137, "another code than the worker's")
    expect(kFirstFailure in a.text(), "the report is missing")
