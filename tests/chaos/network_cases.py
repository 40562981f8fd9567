"""Packet loss: hosts in network namespaces behind a switch that drops packets."""

import contextlib
import pathlib
import subprocess
import sys

from cases import case, expect
from harness import SOON_LOST, Cluster, pause
from exit_codes import COORDINATOR_LOST
from sentences import kNoNodesAddress
from namespaces import Network


@contextlib.contextmanager
def network(cluster: Cluster, hosts: int):
    """Agents `host0` …, each on its own host, with the coordinator's address on host0."""
    with Network(hosts, cluster.random.randrange(10**6)) as wires:
        cluster.host = wires.address(0)
        cluster.prefix = {f"host{number}": wires.prefix(number) for number in range(hosts)}
        cluster.prefix["rdzvd"] = wires.prefix(0)
        try:
            yield wires
        finally:
            cluster.stop_agents()


@case("nodes on several hosts: the master address is that of the node with rank 0", "namespaces")
def several_hosts(cluster: Cluster):
    cluster.flags |= {"nnodes": "3", "nproc-per-node": "2"}
    with network(cluster, 3):
        agents = [cluster.start(f"host{number}") for number in (2, 1, 0)]
        one = cluster.wait_for_round(agents)
        expect(one.master[0].startswith("10.77.0."), f"master {one.master}")
        cluster.finish()
        cluster.end_all(0)


@case("10 % packet loss: the round forms, a restart succeeds, all exit 0",
      "namespaces")
def lossy(cluster: Cluster):
    cluster.flags |= {"nnodes": "3", "max-restarts": "1"}
    cluster.conf |= {"keep_alive_interval": "1", "keep_alive_max_attempt": "10"}
    with network(cluster, 3) as wires:
        wires.loss = 0.1
        agents = [cluster.start(f"host{number}") for number in range(3)]
        first = cluster.wait_for_round(agents, seconds=60)
        cluster.fail(1, first.number, 3)
        second = cluster.wait_for_round(agents, after=first, seconds=60)
        expect(second.restarts == 1, f"restart count {second.restarts}")
        cluster.finish()
        cluster.end_all(0, seconds=60)


@case("a disconnected host is lost at the silence limit, and rejoins when reconnected",
      "namespaces")
def cut_off(cluster: Cluster):
    cluster.flags |= {"nnodes": "1:3"}
    cluster.conf |= SOON_LOST
    with network(cluster, 3) as wires:
        agents = [cluster.start(f"host{number}") for number in range(3)]
        first = cluster.wait_for_round(agents)
        wires.cut = {2}
        second = cluster.wait_for_round(agents[:2], after=first)
        expect(second.restarts == 0, f"restart count {second.restarts}")
        wires.cut = set()
        cluster.wait_for_round(agents, after=second)
        cluster.finish()
        cluster.end_all(0)


@case("a network failure shorter than the silence limit changes nothing", "namespaces")
def flicker(cluster: Cluster):
    cluster.flags |= {"nnodes": "1:3"}
    with network(cluster, 3) as wires:
        agents = [cluster.start(f"host{number}") for number in range(3)]
        cluster.wait_for_round(agents)
        for number in (1, 2):
            wires.cut = {number}
            pause(1)  # five of fifty heartbeats are missed
            wires.cut = set()
            pause(0.5)
        expect(len(cluster.rounds()) == 1, "a new round although no node was lost")
        cluster.finish()
        cluster.end_all(0)


@case("a host disconnected for good stops its workers after coordinator_timeout", "namespaces")
def cut_for_good(cluster: Cluster):
    cluster.flags |= {"nnodes": "1:2"}
    cluster.conf |= SOON_LOST | {"coordinator_timeout": "1.5"}
    with network(cluster, 2) as wires:
        # With the store, host1 would wait for the rank of host0 that it cannot hear any more.
        agents = [cluster.start(f"host{number}", node_rank=number) for number in range(2)]
        first = cluster.wait_for_round(agents)
        wires.cut = {1}
        cluster.wait_for_round(agents[:1], after=first)
        code = agents[1].end()
        expect(code == COORDINATOR_LOST, f"the node that was cut off ended with {code}")
        cluster.finish()
        cluster.end_all(0, agents[1])  # the disconnected host is not waited for


@case("the store of a round refuses a host without a node, and accepts any address of a node",
      "namespaces")
def stranger(cluster: Cluster):
    cluster.flags |= {"nnodes": "2"}
    meet_a_stranger(cluster)


@case("the store at a fixed master address refuses a host without a node", "namespaces")
def stranger_static(cluster: Cluster):
    cluster.flags |= {"nnodes": "2", "rdzv-backend": "static"}
    meet_a_stranger(cluster)


@case("with --store-open the store of a round accepts every host", "namespaces")
def stranger_admitted(cluster: Cluster):
    cluster.flags |= {"nnodes": "2"}
    cluster.environment["DDPRUN_STORE_OPEN"] = "1"
    meet_a_stranger(cluster, admitted=True)


def meet_a_stranger(cluster: Cluster, admitted: bool = False) -> None:
    with network(cluster, 3) as wires:
        wires.add_address(1, "10.77.0.102")
        agents = [cluster.start(f"host{number}", node_rank=number) for number in range(2)]
        one = cluster.wait_for_round(agents)
        for number, source in ((0, "10.77.0.1"), (1, "10.77.0.2"), (1, "10.77.0.102")):
            expect(answers(wires, number, one.master, source), f"{source} was refused")
        for _ in range(2):
            answered = answers(wires, 2, one.master, "10.77.0.3")
            expect(answered == admitted, f"the stranger was {'' if answered else 'not '}answered")
        said = sum(agent.text().count(kNoNodesAddress) for agent in agents)
        expect(said == (0 if admitted else 1), f"{said} lines about the stranger")
        cluster.finish()
        cluster.end_all(0)


@case("the status page of a run is shown to whom --status names", "namespaces")
def status_page(cluster: Cluster):
    cluster.flags |= {"nnodes": "2"}
    cluster.worker.append("argument-of-a-worker")
    cluster.environment["OF_A_WORKER"] = "variable-of-a-worker"
    # What hosts 0, 1 and 2 get; the last one has no node of the run.
    for access, codes in {None: "200 403 403", "all": "200 200 200", "off": "403 403 403"}.items():
        with network(cluster, 3) as wires:
            agents = [cluster.start(f"host{number}", node_rank=number, status=access)
                      for number in range(2)]
            cluster.wait_for_round(agents)
            pages = [page_on(wires, number, f"{cluster.host}:{cluster.port}")
                     for number in range(3)]
            expect([page[:3] for page in pages] == codes.split(), f"{access}: {pages}")
            shown = "".join(pages)
            expect("-of-a-worker" not in shown and "OF_A_WORKER" not in shown, shown)
            expect((cluster.run_id in shown) == ("200" in codes), shown)
            cluster.finish()
            cluster.end_all(0)
            cluster.forget()


def page_on(wires: Network, number: int, endpoint: str) -> str:
    """What the coordinator answers to a program on that host: the code, then the body."""
    reader = [sys.executable, "-S", "-c", READER, endpoint]
    return subprocess.run([*wires.prefix(number), *reader], capture_output=True, text=True,
                          timeout=60, check=True).stdout


READER = """
import sys, urllib.error, urllib.request
try:
    answer = urllib.request.urlopen(f"http://{sys.argv[1]}/status", timeout=20)
except urllib.error.HTTPError as refused:
    answer = refused
print(answer.status, answer.read().decode())
"""


def answers(wires: Network, number: int, master: tuple[str, str], source: str) -> bool:
    """Whether the store answers a client on that host, from that address."""
    client = [sys.executable, "-S", "-c", CLIENT, *master, source]
    here = str(pathlib.Path(__file__).resolve().parent)
    done = subprocess.run([*wires.prefix(number), *client], cwd=here, timeout=60, check=False)
    expect(done.returncode in (0, 1), f"the client ended with {done.returncode}")
    return done.returncode == 0


CLIENT = """
import socket, struct, sys
host, port, source = sys.argv[1:]
with socket.create_connection((host, int(port)), timeout=20, source_address=(source, 0)) as one:
    one.sendall(struct.pack("<BIBI", 0, 0x3C85F7CE, 13, 77))
    try:
        sys.exit(0 if one.recv(4) else 1)
    except ConnectionResetError:
        sys.exit(1)
"""
