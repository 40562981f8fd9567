"""etcd does not answer: while a run ends, while a node joins, while its disk stalls."""

import signal

import processes
from cases import case, expect
from disks import FrozenDisk
from etcd_cases import SECONDS, TTL, etcd_run, finish_after_restart, leading
from harness import Cluster, pause


def lose_quorum(cluster: Cluster, etcd, agents) -> None:
    """Two of three members end, and each node knows it."""
    for index in (1, 2):
        etcd.kill(index)
    for agent in agents:
        cluster.wait_for_text(agent, r"does not answer .*workers keep running", SECONDS)


@case("etcd: a run whose ranks have finished does not wait for a quorum for ever", "etcd")
def finished_without_quorum(cluster: Cluster):
    with etcd_run(cluster, "3") as etcd:
        cluster.conf["coordinator_timeout"] = "5"
        agents = cluster.start_many(3)
        cluster.wait_for_round(agents, seconds=SECONDS)
        lose_quorum(cluster, etcd, agents)
        cluster.finish()
        cluster.end_all(0, seconds=SECONDS)
        for agent in agents:
            cluster.wait_for_text(agent, r"exited with code 0.*; etcd \S+ has not answered for 5 s")


@case("etcd: stopped without a quorum, all nodes of a run that has finished end with 0", "etcd")
def stopped_without_quorum(cluster: Cluster):
    with etcd_run(cluster, "3") as etcd:
        agents = cluster.start_many(3)
        one = cluster.wait_for_round(agents, seconds=SECONDS)
        lose_quorum(cluster, etcd, agents)
        cluster.finish()
        cluster.wait_for(lambda: not any(map(processes.is_alive, one.pids.values())),
                         "end of all ranks")
        for agent in agents:
            agent.send(signal.SIGTERM)
        cluster.end_all(0)


@case("etcd: the coordinator ends without a quorum: nodes that have finished name etcd", "etcd")
def coordinator_ends_without_quorum(cluster: Cluster):
    with etcd_run(cluster, "2") as etcd:
        cluster.conf["coordinator_timeout"] = "5"
        agents = cluster.start_many(2)
        one = cluster.wait_for_round(agents, seconds=SECONDS)
        leader = leading(cluster, etcd)
        other = next(agent for agent in agents if agent is not leader)
        lose_quorum(cluster, etcd, agents)
        cluster.finish(one.rank_of(other))
        cluster.wait_for(lambda: not any(map(processes.is_alive, one.pids_of(other))), "end of it")
        leader.send(signal.SIGKILL)
        expect(other.end(SECONDS) == 0, "the exit code of a node whose ranks have finished")
        cluster.wait_for_text(other, r"is unknown: .*etcd \S+ does not answer")


@case("etcd: two of three members end: a node that joins waits, and says for what", "etcd")
def joins_without_quorum(cluster: Cluster):
    with etcd_run(cluster) as etcd:
        agents = cluster.start_many(2)
        first = cluster.wait_for_round(agents, seconds=SECONDS)
        lose_quorum(cluster, etcd, agents)
        late = cluster.start()
        cluster.wait_for_text(late, r"waiting for the coordinator of etcd", SECONDS)
        cluster.wait_for_text(late, r"does not answer", SECONDS)
        expect(len(cluster.rounds()) == 1, "a round without a quorum")
        expect(all(map(processes.is_alive, first.pids.values())), "the ranks do not train")
        for index in (1, 2):
            etcd.start(index)
        second = cluster.wait_for_round([*agents, late], after=first, seconds=SECONDS)
        expect(second.restarts == 0, f"restart count {second.restarts}")
        cluster.finish()
        cluster.end_all(0)


@case("etcd: a slow disk: no node is lost, and a restart works afterwards", "etcd", "freeze")
def slow_disk(cluster: Cluster):
    with (FrozenDisk(cluster, megabytes=256) as disk,
          etcd_run(cluster, "3", servers=1, restarts=1, disk=disk.path)):
        agents = cluster.start_many(3)
        first = cluster.wait_for_round(agents, seconds=SECONDS)
        disk.stall()
        pause(3 * TTL)  # no lease can be renewed
        expect(len(cluster.rounds()) == 1, "a round while etcd could write nothing")
        disk.go_on()
        finish_after_restart(cluster, agents, first)
