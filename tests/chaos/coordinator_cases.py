"""A separate coordinator, ddprun-rdzvd, that dies, returns, or stays down."""

import signal

from cases import case, expect
from harness import SOON_LOST, Cluster, pause
from exit_codes import COORDINATOR_LOST


def with_daemon(cluster: Cluster, nodes: str):
    cluster.flags["nnodes"] = nodes
    cluster.conf["is_host"] = "false"
    cluster.start_daemon()


@case("ddprun-rdzvd is killed and restarted: training continues with the same workers")
def daemon_restarted(cluster: Cluster):
    with_daemon(cluster, "2")
    agents = cluster.start_many(2)
    first = cluster.wait_for_round(agents)
    console = cluster.folder / "rdzvd.console"
    for times in (1, 2):
        cluster.stop_daemon()
        pause(0.3)
        cluster.start_daemon()
        cluster.wait_for(lambda: console.read_text().count("reconnected; the round") == times,
                         f"return of both nodes to coordinator {times + 1}")
    expect(len(cluster.rounds()) == 1, "a new round although all nodes reconnected")
    expect(all(agent.is_running() for agent in agents), "an agent ended")
    cluster.finish()
    cluster.end_all(0)
    expect(cluster.rounds()[0].pids == first.pids, "workers changed")


@case("a worker failure after a restart of ddprun-rdzvd uses one restart of the same budget")
def budget_survives(cluster: Cluster):
    with_daemon(cluster, "2")
    cluster.flags["max-restarts"] = "2"
    agents = cluster.start_many(2)
    first = cluster.wait_for_round(agents)
    cluster.fail(1, first.number, 3)
    second = cluster.wait_for_round(agents, after=first)
    cluster.stop_daemon()
    cluster.start_daemon()
    cluster.fail(0, second.number, 4)
    third = cluster.wait_for_round(agents, after=second)
    expect(third.restarts == 2, f"restart count {third.restarts} after two failures")
    cluster.fail(1, third.number, 5)
    cluster.end_all(5)


@case("an agent killed while ddprun-rdzvd is down is lost when it returns")
def agent_lost_meanwhile(cluster: Cluster):
    cluster.conf |= SOON_LOST
    with_daemon(cluster, "1:3")
    agents = cluster.start_many(3)
    first = cluster.wait_for_round(agents)
    cluster.stop_daemon()
    agents[2].send(signal.SIGKILL)
    pause(0.2)
    cluster.start_daemon()
    cluster.wait_for_round(agents[:2], after=first)
    cluster.finish()
    cluster.end_all(0, agents[2])


@case("rank 0's node is killed: the others continue, although workers fail without its store")
def store_lost(cluster: Cluster):
    with_daemon(cluster, "1:3")
    cluster.flags["nproc-per-node"] = "2"
    cluster.environment["CHAOS_BRITTLE"] = "1"
    agents = cluster.start_many(3)
    first = cluster.wait_for_round(agents)
    victim = next(agent for agent in agents if first.rank_of(agent) == 0)
    victim.send(signal.SIGKILL)
    survivors = [agent for agent in agents if agent is not victim]
    second = cluster.wait_for_round(survivors, after=first)
    expect(second.restarts == 0, f"restart count {second.restarts}")
    cluster.finish()
    cluster.end_all(0, victim)


@case("ddprun-rdzvd stays down: workers stop after coordinator_timeout, every node says why")
def daemon_gone(cluster: Cluster):
    cluster.conf["coordinator_timeout"] = "1"
    with_daemon(cluster, "2")
    agents = cluster.start_many(2)
    cluster.wait_for_round(agents)
    cluster.stop_daemon()
    cluster.end_all(COORDINATOR_LOST)
    for agent in agents:
        expect("coordinator_timeout" in agent.text(), f"{agent.name} does not name the option")


def suspend(send, first, cluster: Cluster, shares=(0.5, 0.9, 1.1, 2)):
    """Three agents have a silence limit of 2 s; none may be lost for pauses of such parts of it."""
    for share in shares:
        send(signal.SIGSTOP)
        pause(2 * share)
        send(signal.SIGCONT)
        pause(0.7)  # the longest back-off is a quarter of the limit
    expect(len(cluster.rounds()) == 1, "a new round although no node was lost")
    cluster.finish()
    cluster.end_all(0)
    expect(cluster.rounds()[0].pids == first.pids, "workers changed")


@case("ddprun-rdzvd suspended by SIGSTOP for 0.5 to 2 times the silence limit loses no node")
def daemon_suspended(cluster: Cluster):
    cluster.conf |= {"keep_alive_interval": "0.4"} | SOON_LOST
    with_daemon(cluster, "1:3")
    first = cluster.wait_for_round(cluster.start_many(3))
    suspend(cluster.daemon.send_signal, first, cluster)


@case("the root's ddprun suspended by SIGSTOP for less than the silence limit loses no node")
def root_suspended(cluster: Cluster):
    cluster.flags["nnodes"] = "1:3"
    cluster.conf |= {"keep_alive_interval": "0.4"} | SOON_LOST
    agents = cluster.start_with_root(3)
    first = cluster.wait_for_round(agents)
    suspend(agents[0].send, first, cluster, shares=(0.3, 0.5, 0.7))


@case("an agent killed while ddprun-rdzvd is suspended is lost when it resumes")
def agent_killed_while_suspended(cluster: Cluster):
    cluster.conf |= SOON_LOST
    with_daemon(cluster, "1:3")
    agents = cluster.start_many(3)
    first = cluster.wait_for_round(agents)
    cluster.daemon.send_signal(signal.SIGSTOP)
    pause(0.3)
    agents[2].send(signal.SIGKILL)
    pause(1.2)
    cluster.daemon.send_signal(signal.SIGCONT)
    cluster.wait_for_round(agents[:2], after=first)
    cluster.finish()
    cluster.end_all(0, agents[2])


@case("the same run id can be used again after the run")
def run_id_again(cluster: Cluster):
    with_daemon(cluster, "2")
    cluster.wait_for_round(cluster.start_many(2))
    cluster.finish()
    cluster.end_all(0)
    cluster.forget()
    one = cluster.wait_for_round(cluster.start_many(2))
    expect(one.number == 1, f"the new run began with round {one.number}")
    cluster.finish()
    cluster.end_all(0)
