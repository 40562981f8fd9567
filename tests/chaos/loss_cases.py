"""Agents and workers that are killed, suspended or terminated."""

import signal

import processes
from cases import case, expect
from harness import SOON_LOST, Cluster, pause
from sentences import kWaitingForNodes


@case("kill -9 of a worker restarts all nodes with a new store and uses one restart")
def worker_killed(cluster: Cluster):
    cluster.flags |= {"nnodes": "2", "max-restarts": "2", "nproc-per-node": "2"}
    agents = cluster.start_with_root(2)
    first = cluster.wait_for_round(agents)
    victim = cluster.random.randrange(4)
    processes.kill(first.pids[victim])
    second = cluster.wait_for_round(agents, after=first)
    expect(second.restarts == 1, f"restart count {second.restarts} after one failure")
    expect(second.master != first.master, "the second round has the first one's store")
    expect(not set(first.pids.values()) & set(second.pids.values()), "a worker survived")
    cluster.finish()
    cluster.end_all(0)


@case("kill -9 of two workers on two nodes at once uses one restart")
def two_workers_killed(cluster: Cluster):
    cluster.flags |= {"nnodes": "2", "max-restarts": "1"}
    agents = cluster.start_with_root(2)
    first = cluster.wait_for_round(agents)
    for pid in first.pids.values():
        processes.kill(pid)
    second = cluster.wait_for_round(agents, after=first)
    expect(second.restarts == 1, f"restart count {second.restarts}")
    cluster.finish()
    cluster.end_all(0)


@case("kill -9 of an agent: the others continue without it, and no restart is used")
def agent_killed(cluster: Cluster):
    cluster.flags |= {"nnodes": "1:3", "nproc-per-node": "2"}
    agents = cluster.start_with_root(3)
    first = cluster.wait_for_round(agents)
    victim = cluster.random.choice(agents[1:])
    victim.send(signal.SIGKILL)
    victim.end()
    survivors = [agent for agent in agents if agent is not victim]
    second = cluster.wait_for_round(survivors, after=first)
    expect(second.restarts == 0, f"restart count {second.restarts}")
    expect_order_kept(first, second, survivors)
    cluster.finish()
    cluster.end_all(0, victim)


@case("kill -9 of an agent below the minimum: the others wait, and continue with a replacement")
def agent_replaced(cluster: Cluster):
    cluster.flags |= {"nnodes": "2"}
    agents = cluster.start_with_root(2)
    first = cluster.wait_for_round(agents)
    agents[1].send(signal.SIGKILL)
    agents[1].end()
    cluster.wait_for_text(agents[0], kWaitingForNodes + "1 of 2")
    newcomer = cluster.start()
    second = cluster.wait_for_round([agents[0], newcomer], after=first)
    expect(second.rank_of(agents[0]) == 0, "rank 0 moved although its node lived")
    cluster.finish()
    cluster.end_all(0, agents[1])


@case("two agents lost at the same time cause one new round of the others")
def two_agents_killed(cluster: Cluster):
    cluster.flags |= {"nnodes": "1:4"}
    agents = cluster.start_with_root(4)
    first = cluster.wait_for_round(agents)
    for agent in agents[2:]:
        agent.send(signal.SIGKILL)
    second = cluster.wait_for_round(agents[:2], after=first)
    expect_order_kept(first, second, agents[:2])
    cluster.finish()
    cluster.end_all(0, *agents[2:])


@case("SIGTERM to an agent: it leaves with 143, the others continue")
def agent_terminated(cluster: Cluster):
    leaves(cluster, signal.SIGTERM)


@case("SIGINT to an agent: it leaves with 130, the others continue")
def agent_interrupted(cluster: Cluster):
    leaves(cluster, signal.SIGINT)


def leaves(cluster: Cluster, number: int):
    cluster.flags |= {"nnodes": "1:3"}
    agents = cluster.start_with_root(3)
    first = cluster.wait_for_round(agents)
    agents[2].send(number)
    code = agents[2].end()
    expect(code == 128 + number, f"{agents[2].name} ended with {code}")
    cluster.wait_for_round(agents[:2], after=first)
    cluster.finish()
    cluster.end_all(0, agents[2])


@case("SIGTERM to an agent below the minimum ends the run with 143 on every node")
def agent_terminated_below_minimum(cluster: Cluster):
    cluster.flags |= {"nnodes": "2"}
    agents = cluster.start_with_root(2)
    cluster.wait_for_round(agents)
    agents[1].send(signal.SIGTERM)
    cluster.end_all(143)
    for agent in agents:
        expect("SIGTERM from " in agent.text(), f"{agent.name} does not say who sent it")


@case("SIGSTOP to an agent: lost at the silence limit, rejoins after SIGCONT")
def agent_stopped(cluster: Cluster):
    cluster.flags |= {"nnodes": "1:2"}
    cluster.conf |= SOON_LOST
    agents = cluster.start_with_root(2)
    first = cluster.wait_for_round(agents)
    agents[1].send(signal.SIGSTOP)
    second = cluster.wait_for_round(agents[:1], after=first)
    agents[1].send(signal.SIGCONT)
    third = cluster.wait_for_round(agents, after=second)
    expect(third.restarts == 0, f"restart count {third.restarts}")
    expect(third.rank_of(agents[0]) == 0, "rank 0 moved although its node lived")
    cluster.finish()
    cluster.end_all(0)


@case("SIGSTOP to an agent that no smaller round may miss: nothing restarts, its round continues")
def agent_stopped_below_minimum(cluster: Cluster):
    cluster.flags |= {"nnodes": "2"}
    cluster.conf |= SOON_LOST
    agents = cluster.start_with_root(2)
    first = cluster.wait_for_round(agents)
    pids = [pid for agent in agents for pid in first.pids_of(agent)]
    agents[1].send(signal.SIGSTOP)
    cluster.wait_for_text(agents[0], "the round is kept until it is back")
    agents[1].send(signal.SIGCONT)
    cluster.wait_for_text(agents[0], "is back after .* continues")
    expect(all(map(processes.is_alive, pids)), "ranks have ended")
    cluster.finish()
    cluster.end_all(0)
    expect(len(cluster.rounds()) == 1, "there was a second round")


@case("SIGSTOP to the root that no smaller round may miss: nothing restarts, its round continues")
def root_stopped_below_minimum(cluster: Cluster):
    cluster.flags |= {"nnodes": "3"}
    cluster.conf |= SOON_LOST
    root, *others = cluster.start_with_root(3)
    first = cluster.wait_for_round([root, *others])
    pids = [pid for agent in (root, *others) for pid in first.pids_of(agent)]
    root.send(signal.SIGSTOP)
    cluster.wait_for(lambda: any("the round is kept" in one.text() for one in others),
                     "a line about the wait")
    root.send(signal.SIGCONT)
    cluster.wait_for_text(root, "coordinates the run|the run is coordinated by")
    expect(all(map(processes.is_alive, pids)), "ranks have ended")
    cluster.finish()
    cluster.end_all(0)
    expect(len(cluster.rounds()) == 1, "there was a second round")


@case("SIGSTOP to an agent for less than the silence limit changes nothing")
def agent_stopped_briefly(cluster: Cluster):
    cluster.flags |= {"nnodes": "1:2"}
    agents = cluster.start_with_root(2)
    first = cluster.wait_for_round(agents)
    for _ in range(2):
        agents[1].send(signal.SIGSTOP)
        pause(1.5)  # seven of fifty heartbeats are missed
        agents[1].send(signal.SIGCONT)
        pause(0.3)
    expect(len(cluster.rounds()) == 1, "a new round although no node was lost")
    cluster.finish()
    cluster.end_all(0)
    expect(cluster.rounds()[0].pids == first.pids, "workers changed")


@case("SIGSTOP to the root for less than the silence limit loses no node")
def root_stopped_briefly(cluster: Cluster):
    cluster.flags |= {"nnodes": "1:3"}
    root, *others = cluster.start_with_root(3)
    cluster.wait_for_round([root, *others])
    for _ in range(2):
        root.send(signal.SIGSTOP)
        pause(1.5)
        root.send(signal.SIGCONT)
        pause(0.3)
    expect(len(cluster.rounds()) == 1, "a new round although no node was lost")
    cluster.finish()
    cluster.end_all(0)


@case("an agent that leaves and returns within one second joins a new round")
def leaves_and_returns(cluster: Cluster):
    cluster.flags |= {"nnodes": "1:2"}
    agents = cluster.start_with_root(2)
    last = cluster.wait_for_round(agents)
    gone = []
    for how in (signal.SIGKILL, signal.SIGTERM):
        agents[1].send(how)
        agents[1].end()
        gone.append(agents[1])
        agents[1] = cluster.start()
        last = cluster.wait_for_round(agents, after=last)
        expect(last.restarts == 0, f"restart count {last.restarts}")
    cluster.finish()
    cluster.end_all(0, *gone)


@case("kill -9 of the root, then restarted: all nodes form a round again")
def root_returns(cluster: Cluster):
    cluster.flags |= {"nnodes": "1:3"}
    cluster.conf |= SOON_LOST
    root, *others = cluster.start_with_root(3)
    first = cluster.wait_for_round([root, *others])
    root.send(signal.SIGKILL)
    root.end()
    again = cluster.start()
    cluster.wait_for_round([again, *others], after=first)
    cluster.finish()
    cluster.end_all(0, root)


def expect_order_kept(before, after, agents):
    def order(one):
        return [agent.name for agent in sorted(agents, key=one.rank_of)]
    expect(order(before) == order(after), f"order {order(before)} became {order(after)}")
