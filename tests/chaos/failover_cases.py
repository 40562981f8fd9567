"""The coordinator's ddprun dies: another node of the round takes its place (docs/FAILOVER.md)."""

import signal

from cases import case, expect
from harness import SOON_LOST, Cluster, pause
from network_cases import network
from sentences import kCoordinatedBy


def begin(cluster: Cluster, nodes: int, least: int = 1, restarts: int = 0):
    """The agents, the root first, and their first round."""
    cluster.flags |= {"nnodes": f"{least}:{nodes}", "max-restarts": str(restarts)}
    agents = cluster.start_with_root(nodes)
    return agents, cluster.wait_for_round(agents)


def go_on(cluster: Cluster, agents, after, restarts: int = 0):
    """All of these, in a later round that cost nothing."""
    one = cluster.wait_for_round(agents, after=after)
    expect(one.restarts == restarts, f"restart count {one.restarts}")
    return one


def finish(cluster: Cluster, *dead) -> None:
    cluster.finish()
    cluster.end_all(0, *dead)


@case("kill -9 of the root: the others continue under its successor, without a restart")
def root_killed(cluster: Cluster):
    (root, *others), first = begin(cluster, 3)
    root.send(signal.SIGKILL)
    second = go_on(cluster, others, first)
    expect(second.number == first.number + 1, f"round {second.number}")
    expect("coordinates the run now" in others[0].text() + others[1].text(), "no node said so")
    finish(cluster, root)


@case("kill -9 of one coordinator after the other, until one node is left")
def one_after_the_other(cluster: Cluster):
    agents, last = begin(cluster, 4)
    dead = []
    while len(agents) > 1:
        coordinator = min(agents, key=last.rank_of)
        agents.remove(coordinator)
        dead.append(coordinator)
        coordinator.send(signal.SIGKILL)
        last = go_on(cluster, agents, last)
    finish(cluster, *dead)


@case("kill -9 of the root, and of its successor 10 ms later")
def with_successor(cluster: Cluster):
    agents, first = begin(cluster, 5)
    root, successor, *others = sorted(agents, key=first.rank_of)
    root.send(signal.SIGKILL)
    pause(0.01)
    successor.send(signal.SIGKILL)
    go_on(cluster, others, first)
    finish(cluster, root, successor)


@case("kill -9 of the root of two nodes: the refusal is proof, and the other one continues")
def root_of_two(cluster: Cluster):
    (root, other), first = begin(cluster, 2)
    root.send(signal.SIGKILL)
    go_on(cluster, [other], first)
    finish(cluster, root)


@case("kill -9 of the root below the minimum: the next node that joins completes the round")
def below_the_minimum(cluster: Cluster):
    (root, *others), first = begin(cluster, 3, least=3)
    root.send(signal.SIGKILL)
    root.end()
    for agent in others:
        cluster.wait_for_text(agent, "waiting for nodes|2 of 3|minimum 3")
    again = cluster.start()
    go_on(cluster, [again, *others], first)
    finish(cluster, root)


@case("the root that is started again joins its run as an ordinary node, also the second time")
def started_again(cluster: Cluster):
    (root, *others), last = begin(cluster, 3)
    dead = []
    for _ in range(2):
        root.send(signal.SIGKILL)
        root.end()
        dead.append(root)
        last = go_on(cluster, others, last)
        root = cluster.start()
        last = go_on(cluster, [root, *others], last)
        expect(kCoordinatedBy in root.text(), "it was not forwarded")
        root, others = others[0], [root, *others[1:]]  # the one that coordinates is next
    finish(cluster, *dead)


@case("kill -9 of the root while it waits for nodes: they form the round with the next one")
def while_forming(cluster: Cluster):
    cluster.flags |= {"nnodes": "3"}
    root, other = cluster.start_with_root(2)
    cluster.wait_for_text(root, "1 rank here")
    root.send(signal.SIGKILL)
    root.end()
    agents = [other, *cluster.start_many(2)]
    cluster.wait_for_round(agents)
    finish(cluster, root)


@case("kill -9 of the root in the last call: the others form the round with a new root")
def in_the_last_call(cluster: Cluster):
    cluster.flags |= {"nnodes": "1:3"}
    root, other = cluster.start_with_root(2)
    pause(0.3)
    root.send(signal.SIGKILL)
    root.end()
    agents = [other, *cluster.start_many(2)]
    cluster.wait_for_round(agents)
    finish(cluster, root)


@case("kill -9 of the root while workers start")
def while_starting(cluster: Cluster):
    cluster.environment["CHAOS_LATE"] = "2"
    cluster.flags |= {"nnodes": "1:3"}
    root, *others = cluster.start_with_root(3)
    cluster.wait_for_text(others[0], "round 1: all 3 nodes joined")
    root.send(signal.SIGKILL)
    cluster.wait_for_round(others)
    finish(cluster, root)


@case("kill -9 of the root while the failure of a worker is answered: one restart at most is used")
def while_restarting(cluster: Cluster):
    (root, *others), first = begin(cluster, 3, restarts=2)
    rank = first.rank_of(others[0])
    cluster.fail(rank, first.number, 3)
    cluster.wait_for(lambda: not is_alive(first.pids[rank]), "failure of a rank")
    pause(cluster.random.choice((0, 0.002, 0.02)))
    root.send(signal.SIGKILL)
    one = cluster.wait_for_round(others, after=first)
    expect(one.restarts <= 1, f"restart count {one.restarts}")
    finish(cluster, root)


@case("kill -9 of the root whose store the ranks need: their failures cost nothing")
def brittle_workers(cluster: Cluster):
    cluster.environment["CHAOS_BRITTLE"] = "1"
    agents, last = begin(cluster, 4)
    dead = []
    for _ in range(3):
        root = min(agents, key=last.rank_of)
        agents.remove(root)
        dead.append(root)
        root.send(signal.SIGKILL)
        last = go_on(cluster, agents, last)
    finish(cluster, *dead)


@case("the run has failed, and its root is killed while the other ranks end: the failure stands")
def failed_already(cluster: Cluster):
    cluster.environment["CHAOS_SAVES"] = "2"
    (root, *others), first = begin(cluster, 3)
    cluster.fail(first.rank_of(others[0]), first.number, 7)
    for agent in others:
        cluster.wait_for_text(agent, "exit code 7")
    root.send(signal.SIGKILL)
    cluster.end_all(7, root)
    expect(len(cluster.rounds()) == 1, "it trains again")


def leave(cluster: Cluster, number: int, *agents, after):
    """The node that coordinates is told to; the others continue under another one."""
    root, *others = sorted(agents, key=after.rank_of)
    root.send(number)
    later = go_on(cluster, others, after)
    expect(later.number == after.number + 1, f"round {later.number} follows {after.number}")
    code = root.end()
    expect(code == 128 + number, f"{root.name} ended with {code}")
    return root, others, later


@case("SIGTERM to the root: it leaves with 143, and the others continue under another node")
def root_leaves(cluster: Cluster):
    agents, first = begin(cluster, 3)
    root, others, _ = leave(cluster, signal.SIGTERM, *agents, after=first)
    cluster.wait_for_text(others[0], "left: SIGTERM.* coordinates the run")
    finish(cluster, root)


@case("Ctrl-C at one coordinator after the other, until one node is left")
def one_leaves_after_the_other(cluster: Cluster):
    others, last = begin(cluster, 4)
    gone = []
    while len(others) > 1:
        root, others, last = leave(cluster, signal.SIGINT, *others, after=last)
        gone.append(root)
    finish(cluster, *gone)


@case("SIGTERM to the root, and kill -9 of it milliseconds later")
def killed_as_it_leaves(cluster: Cluster):
    cluster.flags["nproc-per-node"] = "2"
    cluster.environment["CHAOS_SAVES"] = "0.5"  # so long a rank of the root takes to end
    (root, *others), first = begin(cluster, 3)
    root.send(signal.SIGTERM)
    pause(cluster.random.choice((0, 0.001, 0.003, 0.01)))
    root.send(signal.SIGKILL)
    go_on(cluster, others, first)
    finish(cluster, root)


@case("SIGTERM to the root while another one takes over from it, and to that one")
def both_leave(cluster: Cluster):
    agents, first = begin(cluster, 4)
    root, successor, *others = sorted(agents, key=first.rank_of)
    root.send(signal.SIGTERM)
    pause(cluster.random.choice((0, 0.002, 0.01, 0.03, 0.1, 0.15)))
    successor.send(signal.SIGTERM)
    code = successor.end()
    expect(code == 143, f"the successor ended with {code}")
    expect(root.end() == 143, "the root ended with another code")
    names = {agent.name for agent in others}

    def is_decided():
        newest = cluster.rounds()[-1]
        return newest.agents == names or not any(agent.is_running() for agent in others)

    cluster.wait_for(is_decided, "round of the others, or end of the run")
    cluster.finish()
    if cluster.rounds()[-1].agents != names:  # both at the same moment may end the run
        return cluster.end_all(143)
    cluster.end_all(0, root, successor)


@case("SIGTERM to the root whose store a rank of another node saves with")
def store_of_the_root(cluster: Cluster):
    cluster.environment["CHAOS_SAVES"] = "0.5"
    agents, first = begin(cluster, 2)
    root, others, _ = leave(cluster, signal.SIGTERM, *agents, after=first)
    expect("saved with the store" in others[0].text(), "the store was closed before that")
    finish(cluster, root)


@case("SIGTERM to the root when all other ranks have finished: that is no success")
def others_have_finished(cluster: Cluster):
    (root, *others), first = begin(cluster, 3)
    done = [rank for rank in first.pids if rank != first.rank_of(root)]
    cluster.finish(*done)
    cluster.wait_for(lambda: not any(is_alive(first.pids[rank]) for rank in done), "their end")
    for rank in done:
        (cluster.folder / f"finish.{rank}").unlink()
    root.send(signal.SIGTERM)
    go_on(cluster, others, first)
    expect(root.end() == 143, "the root ended with another code")
    finish(cluster, root)


@case("SIGTERM to the root with a spare node: the spare takes its place")
def spare_follows(cluster: Cluster):
    cluster.flags["nnodes"] = "2"
    agents = cluster.start_with_root(2)
    first = cluster.wait_for_round(agents)
    spare = cluster.start()
    cluster.wait_for_text(spare, "spare")
    agents[0].send(signal.SIGTERM)
    go_on(cluster, [agents[1], spare], first)
    expect(agents[0].end() == 143, "another code")
    finish(cluster, agents[0])


@case("SIGTERM to the leader, and then to the endpoint's node, which had sent nodes on")
def endpoint_leaves_too(cluster: Cluster):
    agents, first = begin(cluster, 5)
    root, *others = sorted(agents, key=first.rank_of)
    root.send(signal.SIGKILL)
    second = go_on(cluster, others, first)
    back = cluster.start()
    third = go_on(cluster, [back, *others], second)
    leader, rest, last = leave(cluster, signal.SIGTERM, back, *others, after=third)
    pause(cluster.random.choice((0, 0.05, 0.3, 0.8)))
    back.send(signal.SIGTERM)
    rest.remove(back)
    go_on(cluster, rest, last)
    expect(back.end() == 143, "another code")
    finish(cluster, root, leader, back)


@case("two times Ctrl-C at a root that is needed: the run ends on every node, and on none again")
def stopped_twice(cluster: Cluster):
    cluster.environment["CHAOS_SAVES"] = "2"
    (root, *others), _ = begin(cluster, 3, least=3)
    root.send(signal.SIGINT)
    for agent in others:
        cluster.wait_for_text(agent, "the run stops|leaves")
    root.send(signal.SIGINT)
    cluster.end_all(130)
    expect(len(cluster.rounds()) == 1, "it trains again")


@case("kill -9 of the root while it stops the run: nothing is left, and no node hangs")
def while_stopping(cluster: Cluster):
    cluster.environment["CHAOS_SAVES"] = "1"
    (root, *others), _ = begin(cluster, 3, least=3)
    root.send(signal.SIGTERM)
    pause(0.2)
    root.send(signal.SIGKILL)
    root.end()
    for agent in others:
        agent.send(signal.SIGTERM)
    for agent in others:
        agent.end()


@case("kill -9 of the root when all other ranks have finished: they have succeeded")
def while_finishing(cluster: Cluster):
    (root, *others), first = begin(cluster, 3)
    cluster.finish(*[first.rank_of(agent) for agent in others])
    for agent in others:
        pid = first.pids[first.rank_of(agent)]
        cluster.wait_for(lambda gone=pid: not is_alive(gone), "end of a rank")
    pause(0.2)
    root.send(signal.SIGKILL)
    cluster.end_all(0, root)


@case("a restart after a fail-over is counted once, by the new coordinator")
def restart_afterwards(cluster: Cluster):
    (root, *others), first = begin(cluster, 3, restarts=1)
    root.send(signal.SIGKILL)
    second = go_on(cluster, others, first)
    cluster.fail(1, second.number, 3)
    third = cluster.wait_for_round(others, after=second)
    expect(third.restarts == 1, f"restart count {third.restarts}")
    cluster.fail(0, third.number, 4)
    cluster.end_all(4, root)


@case("a spare node takes the place of the root that is killed")
def with_a_spare(cluster: Cluster):
    cluster.flags |= {"nnodes": "2"}
    root, other = cluster.start_with_root(2)
    first = cluster.wait_for_round([root, other])
    spare = cluster.start()
    cluster.wait_for_text(spare, "spare")
    root.send(signal.SIGKILL)
    go_on(cluster, [other, spare], first)
    finish(cluster, root)


@case("the root suspended for longer than the silence limit: the others continue, it joins them")
def suspended(cluster: Cluster):
    cluster.conf |= SOON_LOST
    (root, *others), first = begin(cluster, 3)
    root.send(signal.SIGSTOP)
    second = go_on(cluster, others, first)
    root.send(signal.SIGCONT)
    go_on(cluster, [root, *others], second)
    finish(cluster)


@case("random kills and starts, the coordinator's node among them: no hang, no second world")
def random_lives(cluster: Cluster):
    agents, last = begin(cluster, 4)
    dead = []
    for _ in range(8):
        count = cluster.random.randint(1, max(1, (len(agents) - 1) // 2))
        for agent in cluster.random.sample(agents, count):
            agents.remove(agent)
            dead.append(agent)
            agent.send(signal.SIGKILL)
            pause(cluster.random.choice((0, 0.002, 0.02)))
        if cluster.random.random() < 0.5:
            last = go_on(cluster, agents, last)
        agents += cluster.start_many(4 - len(agents))
        last = go_on(cluster, agents, last)
    finish(cluster, *dead)


def is_alive(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as stat:
            return stat.read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


@case("hosts: the first node of the list is gone for good, and a node that is started again joins",
      "namespaces")
def first_host_is_gone(cluster: Cluster):
    with network(cluster, 4) as wires:
        hosts = ",".join(wires.address(number) for number in range(4))
        cluster.flags |= {"nnodes": "1:4", "hosts": hosts, "rdzv-endpoint": "None"}
        agents = [cluster.start(f"host{number}") for number in range(4)]
        last = cluster.wait_for_round(agents)
        first, *others = agents
        first.send(signal.SIGKILL)
        last = go_on(cluster, others, last)
        dead = [first]
        for number in (3, 1):  # a member, then the one that coordinates
            lost = others.pop(number - 1)
            lost.send(signal.SIGKILL)
            dead.append(lost)
            last = go_on(cluster, others, last)
            others.insert(number - 1, cluster.start(f"host{number}"))
            last = go_on(cluster, others, last)
        expect(kCoordinatedBy in others[2].text(), "it was not sent on")
        finish(cluster, *dead)
