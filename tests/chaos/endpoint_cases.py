"""Several ddprun-rdzvd: --rdzv-endpoint=A,B, of which any may be lost (docs/FAILOVER.md)."""

import signal

from cases import case, expect
from harness import SOON_LOST, Cluster, pause
from network_cases import network
from ports import free_port
from sentences import kCoordinatedBy

CONTINUES = "reconnected; the round continues"


def with_endpoints(cluster: Cluster, nodes: str, count: int = 2, running: int = 2) -> list[str]:
    """Their names; the first `running` are started."""
    cluster.flags["nnodes"] = nodes
    ports = {f"rdzvd{number}": free_port() for number in range(count)}
    cluster.endpoints = {name: (cluster.host, port) for name, port in ports.items()}
    cluster.flags["rdzv-endpoint"] = ",".join(f"{cluster.host}:{port}" for port in ports.values())
    for name in list(ports)[:running]:
        start(cluster, name)
    return list(ports)


def start(cluster: Cluster, name: str) -> None:
    cluster.start_daemon(name, *cluster.endpoints[name])


def console(cluster: Cluster, name: str) -> str:
    return (cluster.folder / f"{name}.console").read_text()


def await_line(cluster: Cluster, name: str, text: str, times: int = 1) -> None:
    cluster.wait_for(lambda: console(cluster, name).count(text) >= times, f"'{text}' of {name}")


def finish(cluster: Cluster, *besides) -> None:
    cluster.finish()
    cluster.end_all(0, *besides)


@case("endpoints: kill -9 of one ddprun-rdzvd after the other: the same workers train on")
def each_killed(cluster: Cluster):
    first_daemon, second_daemon = with_endpoints(cluster, "2")
    agents = cluster.start_many(2)
    first = cluster.wait_for_round(agents)
    cluster.stop_daemon(name=first_daemon)
    await_line(cluster, second_daemon, CONTINUES)
    start(cluster, first_daemon)
    await_line(cluster, first_daemon, kCoordinatedBy)
    cluster.stop_daemon(name=second_daemon)
    await_line(cluster, first_daemon, CONTINUES)
    expect(len(cluster.rounds()) == 1, "a new round although no node was lost")
    finish(cluster)
    expect(cluster.rounds()[0].pids == first.pids, "workers changed")


@case("endpoints: kill -9 of a ddprun-rdzvd and of a node: the majority continues, no restart")
def with_a_node(cluster: Cluster):
    first_daemon, _ = with_endpoints(cluster, "1:4")
    cluster.conf |= SOON_LOST
    dead, *others = agents = cluster.start_many(4)
    first = cluster.wait_for_round(agents)
    cluster.stop_daemon(name=first_daemon)
    dead.send(signal.SIGKILL)
    second = cluster.wait_for_round(others, after=first)
    expect(second.restarts == 0, f"restart count {second.restarts}")
    finish(cluster, dead)


@case("endpoints: a suspended ddprun-rdzvd is left after the silence limit, and hands over")
def suspended(cluster: Cluster):
    first_daemon, second_daemon = with_endpoints(cluster, "1:3")
    cluster.conf |= {"keep_alive_interval": "0.4"} | SOON_LOST
    agents = cluster.start_many(3)
    first = cluster.wait_for_round(agents)
    cluster.daemons[first_daemon].send_signal(signal.SIGSTOP)
    await_line(cluster, second_daemon, CONTINUES)
    cluster.daemons[first_daemon].send_signal(signal.SIGCONT)
    await_line(cluster, first_daemon, kCoordinatedBy)
    expect(len(cluster.rounds()) == 1, "a new round although no node was lost")
    finish(cluster)
    expect(cluster.rounds()[0].pids == first.pids, "workers changed")


@case("endpoints: a node that comes to the ddprun-rdzvd that was lost and is back joins its run")
def late_node(cluster: Cluster):
    first_daemon, second_daemon = with_endpoints(cluster, "1:3")
    agents = cluster.start_many(3)
    third = agents[2]
    first = cluster.wait_for_round(agents)
    cluster.stop_daemon(name=first_daemon)
    await_line(cluster, second_daemon, CONTINUES)
    third.send(signal.SIGKILL)
    second = cluster.wait_for_round(agents[:2], after=first)
    start(cluster, first_daemon)
    late = cluster.start()
    cluster.wait_for_round([*agents[:2], late], after=second)
    finish(cluster, third)


@case("endpoints: more nodes than MAX, and a ddprun-rdzvd that is back: one world")
def more_than_most(cluster: Cluster):
    first_daemon, second_daemon = with_endpoints(cluster, "2", running=0)
    start(cluster, second_daemon)
    agents = cluster.start_many(2)
    one = cluster.wait_for_round(agents)
    start(cluster, first_daemon)
    spares = cluster.start_many(2)
    for spare in spares:
        cluster.wait_for_text(spare, "waits as a spare")
    expect(len(cluster.rounds()) == 1, "a second world")
    finish(cluster)
    expect(cluster.rounds()[0].pids == one.pids, "workers changed")


@case("endpoints: nodes that found different ones before the first round meet at the first")
def different_at_first(cluster: Cluster):
    first_daemon, second_daemon = with_endpoints(cluster, "3", running=0)
    cluster.conf |= {"keep_alive_interval": "0.2"} | SOON_LOST
    start(cluster, second_daemon)
    early = cluster.start_many(2)
    for agent in early:
        cluster.wait_for_text(agent, "coordinates the run now")
    start(cluster, first_daemon)
    cluster.wait_for_round([*early, cluster.start()])
    finish(cluster)


@case("endpoints: the first round needs more than half of MAX, whatever MIN is")
def first_round(cluster: Cluster):
    with_endpoints(cluster, "1:3")
    cluster.conf["last_call_timeout"] = "0.5"
    one = cluster.start()
    cluster.wait_for_text(one, "waiting for nodes: 1 of 2")
    pause(1)
    expect(not cluster.rounds(), "a round of one node of three")
    cluster.wait_for_round([one, cluster.start()])
    finish(cluster)


@case("endpoints: nodes and daemons that do not hear each other: the majority's side continues",
      "namespaces")
def partition(cluster: Cluster):
    cluster.conf |= SOON_LOST
    cluster.conf["coordinator_timeout"] = "6"
    cluster.flags["nnodes"] = "1:3"
    cluster.hosts_are_cut_off = True
    with network(cluster, 5) as wires:
        cluster.endpoints = {f"rdzvd{number}": (wires.address(3 + number), 29400)
                             for number in range(2)}
        cluster.prefix |= {f"rdzvd{number}": wires.prefix(3 + number) for number in range(2)}
        cluster.flags["rdzv-endpoint"] = ",".join(host for host, _ in cluster.endpoints.values())
        for name in cluster.endpoints:
            start(cluster, name)
        agents = [cluster.start(f"host{number}") for number in range(3)]
        first = cluster.wait_for_round(agents)
        wires.side = {0, 3}  # one node with the daemon that coordinates
        second = cluster.wait_for_round(agents[1:], after=first)
        expect(second.restarts == 0, f"restart count {second.restarts}")
        wires.side = set()
        cluster.wait_for_round(agents, after=second)
        finish(cluster)
