"""Joining: order, delays, too many and too few nodes, two runs."""

import os
import signal

from cases import case, expect
from harness import Cluster, pause
from exit_codes import JOIN_TIMEOUT
from sentences import kSpareNeverStarted, kWaitingForNodes

SOAK = "DDPRUN_TEST_REPEATS" in os.environ


@case("root first, then the others")
def root_first(cluster: Cluster):
    cluster.flags |= {"nnodes": "3", "nproc-per-node": "2"}
    finish_with(cluster, cluster.start_with_root(3))


@case("all at the same time: one of them becomes the root")
def all_at_once(cluster: Cluster):
    cluster.flags |= {"nnodes": "4"}
    finish_with(cluster, cluster.start_many(4))


@case("root last: the others wait for the coordinator")
def root_last(cluster: Cluster):
    cluster.flags |= {"nnodes": "3"}
    cluster.conf["is_host"] = "false"
    others = cluster.start_many(2)
    pause(0.5)
    cluster.conf["is_host"] = "true"
    finish_with(cluster, [*others, cluster.start_root()])


@case("agents that start at different times form one round")
def far_apart(cluster: Cluster):
    cluster.flags |= {"nnodes": "3"}
    seconds = 30 if SOAK else 3.5
    cluster.conf["join_timeout"] = "120"
    agents = [cluster.start()]
    pause(seconds)
    agents.append(cluster.start())
    pause(seconds)
    agents.append(cluster.start())
    cluster.wait_for_text(agents[0], kWaitingForNodes + "[12] of 3")
    finish_with(cluster, agents)


@case("32 agents on one machine form one round")
def thirty_two(cluster: Cluster):
    cluster.flags |= {"nnodes": "32"}
    agents = cluster.start_many(32)
    one = cluster.wait_for_round(agents, seconds=60)
    expect(len(one.pids) == 32, f"{len(one.pids)} ranks")
    cluster.finish()
    cluster.end_all(0, seconds=60)


@case("32 agents, of which eight are killed in turn and return")
def thirty_two_shaken(cluster: Cluster):
    cluster.flags |= {"nnodes": "1:32"}
    cluster.environment["CHAOS_LATE"] = "0.5"
    root = cluster.start_root()
    agents = cluster.start_many(31)
    cluster.wait_for_round([root, *agents], seconds=60)
    gone = cluster.random.sample(agents, 8)
    for agent in gone:
        agent.send(signal.SIGKILL)
        agent.end()
        agents.append(cluster.start())
    agents = [agent for agent in agents if agent not in gone]
    cluster.wait_for_round([root, *agents], seconds=60)
    cluster.finish()
    cluster.end_all(0, *gone, seconds=60)


@case("one agent above the maximum is a spare, and exits 0 with the run")
def spare(cluster: Cluster):
    cluster.flags |= {"nnodes": "1:2"}
    agents = cluster.start_with_root(2)
    first = cluster.wait_for_round(agents)
    surplus = cluster.start()
    cluster.wait_for_text(surplus, "spare")
    expect(len(cluster.rounds()) == 1, "a spare caused a new round")
    expect(cluster.rounds()[0].pids == first.pids, "workers changed")
    cluster.finish()
    cluster.end_all(0)
    last = surplus.text().splitlines()[-1]
    expect(kSpareNeverStarted in last, last)


@case("another job at the same endpoint is refused, and the run continues")
def two_jobs(cluster: Cluster):
    cluster.flags |= {"nnodes": "1:2", "rdzv-id": "none"}
    cluster.conf["last_call_timeout"] = "0.2"
    root = cluster.start_root()
    first = cluster.wait_for_round([root])
    own = cluster.worker
    cluster.worker = [word.replace("worker.py", "eval.py") for word in own]
    other = cluster.start()
    code = other.end()
    expect(code == 111, f"the second job ended with {code}, not as one that is refused")
    said = other.text()
    told = "runs another command" in said or "eval.py`" in said  # to one that has the secret
    expect(told, f"another command is not told:\n{said}")
    for words in ("--rdzv-id", "--allow-different-commands"):
        expect(words in said, f"{words} is not in:\n{said}")
    expect("eval.py`" in root.text(), f"the root does not tell both:\n{root.text()}")
    expect(len(cluster.rounds()) == 1, "the second job caused a round")
    cluster.worker = own
    cluster.wait_for_round([root, cluster.start()], after=first)
    cluster.finish()
    cluster.end_all(0, other)


@case("nodes with other arguments form one run, and the root says so")
def other_arguments(cluster: Cluster):
    cluster.flags |= {"nnodes": "2", "rdzv-id": "none"}
    root = cluster.start_root()
    cluster.worker = [*cluster.worker, "--config=other"]
    finish_with(cluster, [root, cluster.start()])
    expect("has other arguments than" in root.text(), f"no note:\n{root.text()}")


@case("jobs with different commands form one run if both allow it")
def two_commands(cluster: Cluster):
    cluster.flags |= {"nnodes": "2", "rdzv-id": "none"}
    cluster.environment["DDPRUN_ALLOW_DIFFERENT_COMMANDS"] = "1"
    root = cluster.start_root()
    cluster.worker = [cluster.worker[0], "-B", *cluster.worker[1:]]  # another program
    finish_with(cluster, [root, cluster.start()])


@case("a spare replaces an agent that is killed")
def spare_used(cluster: Cluster):
    cluster.flags |= {"nnodes": "2"}
    agents = cluster.start_with_root(2)
    first = cluster.wait_for_round(agents)
    surplus = cluster.start()
    cluster.wait_for_text(surplus, "spare")
    agents[1].send(signal.SIGKILL)
    cluster.wait_for_round([agents[0], surplus], after=first)
    cluster.finish()
    cluster.end_all(0, agents[1])


@case("an agent that joins later enlarges the run")
def scale_up(cluster: Cluster):
    cluster.flags |= {"nnodes": "1:3", "nproc-per-node": "2"}
    cluster.conf["last_call_timeout"] = "0.2"
    agents = [cluster.start_root()]
    last = cluster.wait_for_round(agents)
    for _ in range(2):
        agents.append(cluster.start())
        last = cluster.wait_for_round(agents, after=last)
        expect(last.restarts == 0, f"restart count {last.restarts}")
        expect(last.rank_of(agents[0]) == 0, "rank 0 moved")
    cluster.finish()
    cluster.end_all(0)


@case("nodes with different nproc have contiguous ranks")
def uneven(cluster: Cluster):
    cluster.flags |= {"nnodes": "3"}
    agents = [cluster.start(nproc_per_node=count) for count in (1, 3, 2)]
    one = cluster.wait_for_round(agents)
    expect(sorted(one.pids) == list(range(6)), f"ranks {sorted(one.pids)}")
    cluster.finish()
    cluster.end_all(0)


@case("two concurrent runs on one ddprun-rdzvd are independent")
def two_runs(cluster: Cluster):
    cluster.flags |= {"nnodes": "2", "max-restarts": "1"}
    cluster.conf["is_host"] = "false"
    cluster.start_daemon()
    with Cluster(cluster.tools, cluster.random.randrange(1000)) as other:
        other.port = cluster.port
        other.conf["is_host"] = "false"
        other.flags["nnodes"] = "2"
        ours, theirs = [], []
        for _ in range(2):
            ours.append(cluster.start())
            theirs.append(other.start())
        before = cluster.wait_for_round(ours)
        kept = other.wait_for_round(theirs)
        os.kill(before.pids[1], signal.SIGKILL)
        cluster.wait_for_round(ours, after=before)
        other.finish()
        other.end_all(0)
        expect(len(other.rounds()) == 1 and other.rounds()[0].pids == kept.pids,
               "the other run was disturbed")
    cluster.finish()
    cluster.end_all(0)


@case("too few agents: all of them exit with 110 after join_timeout, which is named")
def too_few(cluster: Cluster):
    cluster.flags |= {"nnodes": "3"}
    cluster.conf["join_timeout"] = "2"
    agents = cluster.start_with_root(2)
    cluster.end_all(JOIN_TIMEOUT)
    for agent in agents:
        expect("join_timeout" in agent.text(), f"{agent.name} does not name the option")


@case("SIGTERM while waiting: the agent leaves, and another can replace it")
def leaves_the_wait(cluster: Cluster):
    cluster.flags |= {"nnodes": "3"}
    agents = cluster.start_with_root(2)
    cluster.wait_for_text(agents[0], kWaitingForNodes + "2 of 3")
    agents[1].send(signal.SIGTERM)
    code = agents[1].end()
    expect(code == 143, f"exit code {code}")
    finish_with(cluster, [agents[0], *cluster.start_many(2)], agents[1])


@case("a static run restarts all nodes and keeps address and port")
def static_backend(cluster: Cluster):
    cluster.flags |= {"nnodes": "2", "max-restarts": "1", "rdzv-backend": "static",
                      "rdzv-endpoint": "None", "master-addr": "127.0.0.1",
                      "master-port": str(cluster.port)}
    agents = [cluster.start(node_rank=rank) for rank in (0, 1)]
    first = cluster.wait_for_round(agents)
    expect(first.master == ("127.0.0.1", str(cluster.port)), f"master {first.master}")
    expect([first.rank_of(agent) for agent in agents] == [0, 1], "ranks against node ranks")
    os.kill(first.pids[1], signal.SIGKILL)
    second = cluster.wait_for_round(agents, after=first)
    expect(second.master == first.master, f"master {second.master}")
    expect(second.restarts == 1, f"restart count {second.restarts}")
    cluster.finish()
    cluster.end_all(0)


def finish_with(cluster: Cluster, agents: list, *besides):
    one = cluster.wait_for_round(agents)
    expect(one.restarts == 0, f"restart count {one.restarts}")
    cluster.finish()
    cluster.end_all(0, *besides)
