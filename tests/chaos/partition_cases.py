"""Hosts that do not hear each other: one side continues, never two (docs/FAILOVER.md)."""

import signal
import time

from cases import case, expect
from exit_codes import COORDINATOR_LOST
from harness import SOON_LOST, Cluster
from network_cases import network

REMEDY = "ddprun-rdzvd"


def begin(cluster: Cluster, hosts: int, most: int = 0):
    """An agent on each host; the coordinator is on host0."""
    cluster.flags |= {"nnodes": f"1:{most or hosts}"}
    cluster.conf |= SOON_LOST
    cluster.hosts_are_cut_off = True
    # Who holds the store waits for the ranks of hosts that cannot be heard any more.
    agents = [cluster.start(f"host{number}", node_rank=number) for number in range(hosts)]
    return agents, cluster.wait_for_round(agents)


def expect_no_workers(cluster: Cluster, round_of, agent) -> None:
    pids = round_of.pids_of(agent)
    cluster.wait_for(lambda: not any(map(is_running, pids)), f"end of the workers on {agent.name}")


def is_running(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as stat:
            return stat.read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


@case("the root's host is cut off: the others continue after the silence limit, its workers stop",
      "namespaces")
def root_cut_off(cluster: Cluster):
    with network(cluster, 4) as wires:
        (root, *others), first = begin(cluster, 4)
        began = time.monotonic()
        wires.cut = {0}
        second = cluster.wait_for_round(others, after=first)
        took = time.monotonic() - began
        expect(took < 5, f"{took:.1f} s, with a silence limit of 1 s")
        expect(second.restarts == 0, f"restart count {second.restarts}")
        expect_no_workers(cluster, first, root)
        cluster.wait_for_text(root, REMEDY)
        wires.cut = set()
        cluster.wait_for_round([root, *others], after=second)
        cluster.finish()
        cluster.end_all(0)


@case("two and three hosts do not hear each other: the three continue, the two stop", "namespaces")
def majority_without_root(cluster: Cluster):
    cluster.conf["coordinator_timeout"] = "4"
    with network(cluster, 5) as wires:
        agents, first = begin(cluster, 5)
        wires.side = {0, 1}
        cluster.wait_for_round(agents[2:], after=first)
        for agent in agents[:2]:
            expect_no_workers(cluster, first, agent)
        wires.side = set()
        last = [cluster.rounds()[-1]]

        def together():
            last[0] = cluster.rounds()[-1]
            return last[0].agents == {agent.name for agent in agents if agent.is_running()}

        cluster.wait_for(together, "round of all that are left")
        gone = [agent for agent in agents if not agent.is_running()]
        cluster.finish()
        cluster.end_all(0, *gone)


@case("three and two hosts do not hear each other: the three with the root continue", "namespaces")
def majority_with_root(cluster: Cluster):
    cluster.conf["coordinator_timeout"] = "3"
    with network(cluster, 5) as wires:
        agents, first = begin(cluster, 5)
        wires.side = {3, 4}
        cluster.wait_for_round(agents[:3], after=first)
        for agent in agents[3:]:
            code = agent.end()
            expect(code == COORDINATOR_LOST, f"{agent.name} ended with {code}")
            expect(REMEDY in agent.text(), f"{agent.name} names no remedy")


@case("two runs that began apart become one when their leaders hear each other", "namespaces")
def apart(cluster: Cluster):
    cluster.began_apart = True
    cluster.conf["last_call_timeout"] = "0.5"
    with network(cluster, 3) as wires:
        cluster.prefix |= {f"host0.{time}": wires.prefix(0) for time in (2, 3)}
        (root, older), first = begin(cluster, 2, most=3)
        root.send(signal.SIGKILL)
        alone = cluster.wait_for_round([older], after=first)
        wires.side = {1}
        pair = [cluster.start("host0.2", node_rank=0), cluster.start("host2", node_rank=2)]
        second = cluster.wait_for_round(pair, after=alone)
        pair[0].send(signal.SIGKILL)
        other = cluster.wait_for_round(pair[1:], after=second)
        wires.side = set()
        last = cluster.start("host0.3", node_rank=0)
        cluster.wait_for_round([last, older, pair[1]], after=other)
        cluster.finish()
        cluster.end_all(0, root, pair[0])


@case("two hosts do not hear each other: the root's continues, the other one names a remedy",
      "namespaces")
def two_hosts(cluster: Cluster):
    cluster.conf["coordinator_timeout"] = "2"
    with network(cluster, 2) as wires:
        (root, other), first = begin(cluster, 2)
        wires.cut = {1}
        cluster.wait_for_round([root], after=first)
        code = other.end()
        expect(code == COORDINATOR_LOST, f"it ended with {code}")
        expect(REMEDY in other.text(), "it names no remedy")


@case("a partition in two halves: no side continues, and all do when it is over", "namespaces")
def halves(cluster: Cluster):
    with network(cluster, 4) as wires:
        agents, first = begin(cluster, 4)
        wires.side = {2, 3}
        for agent in agents[:2]:
            expect_no_workers(cluster, first, agent)
        rounds = len(cluster.rounds())
        expect(rounds == 1, f"{rounds} rounds")
        wires.side = set()
        cluster.wait_for_round(agents, after=first)
        cluster.finish()
        cluster.end_all(0)
