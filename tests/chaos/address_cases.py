"""Names and addresses of real clusters: what /etc/hosts says on each host, networks that some hosts
lack, forwarded addresses. A run forms in each, and its workers reach each other's store.

Each host is a network namespace with a name and an /etc/hosts of its own. A row of SETUPS starts
hosts 0, 1, ... with one command line, where {n} is the number of the host.
"""

import contextlib
import dataclasses
import signal
import subprocess

from cases import case, expect
from harness import Cluster
from namespaces import ip
from network_cases import network

C10D = "--rdzv-backend=c10d --rdzv-endpoint={endpoint}:29500"
STATIC = "--rdzv-backend=static --node-rank={n} --master-addr={endpoint} --master-port=29500"
LIST = "--hosts={endpoint}"
OWN = "127.0.1.1 node{n}"  # Debian's line of a host's own name
ALL = "10.77.0.1 node0\n10.77.0.2 node1"
BOTH = "10.77.0.1 node0\n10.77.0.2 node0"  # as of a headless service, or a round robin of DNS


@dataclasses.dataclass
class Setup:
    what: str
    words: str
    endpoint: str = "node0"
    root: str = ""  # lines of /etc/hosts on host 0
    others: str = ALL
    network: str = ""  # a function below
    of_root: str = ""  # words for host 0 alone
    endpoint_of_root: str = ""

    def needs(self) -> tuple[str, ...]:
        forwards = self.network.startswith("forwarded")
        return ("namespaces", "iptables") if forwards else ("namespaces",)


SETUPS = [
    Setup("c10d: the root's own name is loopback on it", C10D, root=OWN, others=ALL),
    Setup("static: the root's own name is loopback on it", STATIC, root=OWN, others=ALL),
    Setup("a list: each host's own name is loopback on it", "--hosts=node0,node1",
          root="127.0.1.1 node0\n10.77.0.2 node1", others="127.0.1.1 node1\n10.77.0.1 node0"),
    Setup("c10d: localhost on the root alone", C10D, endpoint_of_root="localhost"),
    Setup("static: localhost on the root alone", STATIC, endpoint_of_root="localhost"),
    Setup("c10d: the name has an address without a route first", C10D,
          root="fd77::1 node0\n" + ALL, others="fd77::1 node0\n" + ALL, network="unrouted_v6"),
    Setup("static: the name has an address without a route first", STATIC,
          root="fd77::1 node0\n" + ALL, others="fd77::1 node0\n" + ALL, network="unrouted_v6"),
    Setup("c10d: the name's first address is of a network of the root alone", C10D,
          root="10.99.0.1 node0\n" + ALL, others="10.99.0.1 node0\n" + ALL, network="second"),
    Setup("c10d: the hosts have two networks and names of one", C10D, endpoint="fast0",
          root="10.88.0.1 fast0\n" + ALL, others="10.88.0.1 fast0\n" + ALL, network="fast"),
    Setup("c10d: another network's address for the workers", C10D + " --local-addr=10.88.0.{i}",
          root=ALL, others=ALL, network="fast"),
    Setup("c10d: a name with both families", C10D, root="fd88::1 node0\n" + ALL,
          others="fd88::1 node0\n" + ALL, network="dual"),
    Setup("static: IPv6 alone", STATIC, endpoint="fd88::1", network="dual"),
    Setup("c10d: IPv6 alone", C10D, endpoint="[fd88::1]", network="dual"),
    Setup("c10d: a link-local address with each host's interface", C10D,
          endpoint="[fe80::77:1%{dev}]", network="linked"),
    Setup("c10d: the root's name resolves on no host but the others", C10D, root="", others=ALL),
    Setup("static: the root's name does not resolve on it", STATIC, root="", others=ALL),
    Setup("c10d: the root's name is a virtual address in front of it", C10D,
          root="203.0.113.5 node0", others="203.0.113.5 node0", network="forwarded"),
    Setup("static: a forwarded address that leads back", STATIC, endpoint="203.0.113.5",
          network="forwarded"),
    Setup("static: a forwarded address that does not lead back", STATIC, endpoint="203.0.113.5",
          network="forwarded_one_way"),
    Setup("c10d: forwarded addresses and is_host", C10D + " --local-addr=203.0.113.{f}",
          endpoint="203.0.113.5", network="forwarded", of_root=" --rdzv-conf=is_host=true"),
    Setup("c10d: the name has the addresses of both hosts, first that of host 0", C10D, root=BOTH,
          others=BOTH),
    Setup("c10d: the name has the addresses of both hosts, each host's own first", C10D,
          root=BOTH, others="10.77.0.2 node0\n10.77.0.1 node0"),
    Setup("c10d: is_host on both hosts", C10D + " --rdzv-conf=is_host=true",
          endpoint="10.77.0.1"),
]


def unrouted_v6(wires) -> None:
    ip("-n", wires.names[0], "addr", "add", "fd77::1/64", "dev", "lo", "nodad")


def second(wires) -> None:
    ip("-n", wires.names[0], "addr", "add", "10.99.0.1/24", "dev", "lo")
    ip("-n", wires.names[1], "route", "add", "10.99.0.0/24", "via", "10.77.0.9")


def fast(wires) -> None:
    for number in range(2):
        wires.add_address(number, f"10.88.0.{number + 1}")


def dual(wires) -> None:
    for number, name in enumerate(wires.names):
        ip("-n", name, "addr", "add", f"fd88::{number + 1}/64", "dev", wires.device(number),
           "nodad")


def linked(wires) -> None:
    for number, name in enumerate(wires.names):
        ip("-n", name, "addr", "add", f"fe80::77:{number + 1}/64", "dev", wires.device(number),
           "nodad")


def forwarded(wires, back: bool = True) -> None:
    """1:1 NAT: host 0 is 203.0.113.5 to host 1, which is 203.0.113.6. No interface has these."""
    for number, name in enumerate(wires.names):
        ip("-n", name, "route", "add", "203.0.113.0/24", "via", wires.address(1 - number))
    rules = [(1, "OUTPUT", "-d", "203.0.113.5", "DNAT", "--to-destination", "10.77.0.1"),
             (0, "OUTPUT", "-d", "203.0.113.6", "DNAT", "--to-destination", "10.77.0.2"),
             (0, "INPUT", "-s", "10.77.0.2", "SNAT", "--to-source", "203.0.113.6"),
             (1, "INPUT", "-s", "10.77.0.1", "SNAT", "--to-source", "203.0.113.5")]
    if back:
        rules.append((0, "OUTPUT", "-d", "203.0.113.5", "DNAT", "--to-destination", "10.77.0.1"))
        rules.append((1, "OUTPUT", "-d", "203.0.113.6", "DNAT", "--to-destination", "10.77.0.2"))
    for number, chain, match, address, target, option, to in rules:
        subprocess.run([*wires.prefix(number), "iptables", "-t", "nat", "-A", chain, match,
                        address, "-j", target, option, to], check=True, capture_output=True)


def forwarded_one_way(wires) -> None:
    forwarded(wires, back=False)


@contextlib.contextmanager
def hosts(cluster: Cluster, setup: Setup):
    with network(cluster, 2) as wires:
        if setup.network:
            globals()[setup.network](wires)
        for number in range(2):
            lines = (setup.others if number else setup.root).format(n=number)
            path = cluster.folder / f"hosts{number}"
            path.write_text(f"127.0.0.1 localhost\n{lines}\n")
            script = f"hostname node{number}; mount --bind {path} /etc/hosts; exec \"$@\""
            cluster.prefix[f"host{number}"] += ["unshare", "-u", "-m", "sh", "-c", script, "sh"]
        yield wires


def words_of(setup: Setup, number: int, wires) -> dict[str, str]:
    endpoint = setup.endpoint.format(dev=wires.device(number))
    if number == 0 and setup.endpoint_of_root:
        endpoint = setup.endpoint_of_root
    text = setup.words + ("" if number else setup.of_root)
    text = text.format(n=number, i=number + 1, f=number + 5, endpoint=endpoint)
    return dict(word.removeprefix("--").split("=", 1) for word in text.split())


@contextlib.contextmanager
def agents_of(setup: Setup, cluster: Cluster):
    cluster.flags |= {"nnodes": "2", "rdzv-endpoint": "None", "rdzv-conf": "None"}
    del cluster.flags["rdzv-backend"]
    cluster.environment["CHAOS_OWN_ADDRESSES"] = "1"
    with hosts(cluster, setup) as wires:
        yield [cluster.start(f"host{number}", **{
            key.replace("-", "_"): value for key, value in words_of(setup, number, wires).items()})
            for number in range(2)]


def play(setup: Setup, cluster: Cluster) -> None:
    with agents_of(setup, cluster) as agents:
        one = cluster.wait_for_round(agents)
        expect(len(one.pids) == 2, f"{len(one.pids)} ranks")
        cluster.finish()
        cluster.end_all(0)


for row in SETUPS:
    case(f"addresses: {row.what}", *row.needs())(lambda cluster, row=row: play(row, cluster))


@case("addresses: a coordinator that nothing reaches at its given address says so", "namespaces")
def unreached(cluster: Cluster):
    cluster.flags |= {"nnodes": "2", "rdzv-backend": "static", "master-addr": "203.0.113.5",
                      "rdzv-endpoint": "None", "rdzv-conf": "None"}
    with network(cluster, 1):
        root = cluster.start("host0")
        cluster.wait_for_text(root, r"no connection to 203\.0\.113\.5:29500 reaches this "
                                    r"coordinator \(203\.0\.113\.5:29500: network is unreachable\)")
        root.send(signal.SIGTERM)
        cluster.end_all(143)


@contextlib.contextmanager
def at_one_name(cluster: Cluster):
    """What starts an agent of a run of one or two nodes on a host whose endpoint has both."""
    both = Setup("", "", root=BOTH, others=BOTH)
    cluster.flags |= {"nnodes": "1:2", "rdzv-endpoint": "node0:29500"}
    cluster.conf |= {"last_call_timeout": 1}
    cluster.environment["CHAOS_OWN_ADDRESSES"] = "1"
    with hosts(cluster, both):
        yield lambda number, **more: cluster.start(f"host{number}", **more)


@case("addresses: a node finds its run late to a name with the addresses of both hosts",
      "namespaces")
def late_at_one_name(cluster: Cluster):
    with at_one_name(cluster) as start:
        first = start(0)
        alone = cluster.wait_for_round([first])
        second = start(1)
        cluster.wait_for_round([first, second], after=alone)
        cluster.finish()
        cluster.end_all(0)


@case("addresses: two runs at a name with the addresses of both hosts are two", "namespaces")
def two_runs_at_one_name(cluster: Cluster):
    with at_one_name(cluster) as start:
        one, other = start(0), start(1, rdzv_id=cluster.run_id + "-other")
        cluster.wait_for(lambda: len(cluster.rounds()) == 2, "a round of each run")
        cluster.hosts_are_cut_off = cluster.began_apart = True  # there are two rounds of a number
        cluster.finish()
        cluster.end_all(0)
        expect("joins it" not in one.text() + other.text(), "a run went to the other one")
