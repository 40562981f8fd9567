"""How a run ends: with one code on every node, soon, and with one report."""

import signal
import time

import processes
from cases import case, expect
from detour import Detour
from harness import Cluster, free_port, pause


@case("a failure without restarts left ends every node within 2 s with one code and one report")
def failure(cluster: Cluster):
    cluster.flags |= {"nnodes": "3", "nproc-per-node": "2"}
    started = time.monotonic()
    agents = cluster.start_with_root(3)
    one = cluster.wait_for_round(agents)
    began = time.monotonic()
    start_took = began - started
    victim = cluster.random.randrange(6)
    cluster.fail(victim, one.number, 37)
    cluster.end_all(37)
    took = time.monotonic() - began
    # A slow start indicates a busy machine.
    expect(took < max(2, start_took), f"the last node ended after {took:.1f} s; the start took "
                                      f"{start_took:.1f} s")
    for agent in agents:
        count = agent.text().count(f"rank {victim}")
        expect(count >= 1, f"{agent.name} does not name rank {victim}")


@case("when all restarts are used every node exits with the code of the last failure")
def budget(cluster: Cluster):
    cluster.flags |= {"nnodes": "2", "max-restarts": "1"}
    agents = cluster.start_many(2)
    first = cluster.wait_for_round(agents)
    cluster.fail(0, first.number, 11)
    second = cluster.wait_for_round(agents, after=first)
    expect(second.restarts == 1, f"restart count {second.restarts}")
    cluster.fail(1, second.number, 12)
    cluster.end_all(12)


def stop_while_a_rank_saves(cluster: Cluster, *stopped: int):
    """Rank 1 uses the store half a second after its stop signal; rank 0's node serves it."""
    cluster.flags |= {"nnodes": "2"}
    cluster.environment["CHAOS_SAVES"] = "0.5"
    agents = cluster.start_with_root(2)
    one = cluster.wait_for_round(agents)
    by_rank = {one.rank_of(agent): agent for agent in agents}
    for rank in stopped:
        by_rank[rank].send(signal.SIGTERM)
    cluster.end_all(143)
    expect("saved with the store" in by_rank[1].text(), "the store was closed before that")


@case("the store stays open while a rank saves its checkpoint: the store's node is stopped")
def store_node_stopped(cluster: Cluster):
    stop_while_a_rank_saves(cluster, 0)


@case("the store stays open while a rank saves its checkpoint: that rank's node is stopped")
def saving_node_stopped(cluster: Cluster):
    stop_while_a_rank_saves(cluster, 1)


@case("the store stays open while a rank saves its checkpoint: both nodes are stopped")
def both_nodes_stopped(cluster: Cluster):
    stop_while_a_rank_saves(cluster, 0, 1)


@case("a node that finishes earlier waits for the others, and all exit 0")
def skew(cluster: Cluster):
    cluster.flags |= {"nnodes": "2"}
    agents = cluster.start_many(2)
    one = cluster.wait_for_round(agents)
    early = cluster.random.randrange(2)
    cluster.finish(early)
    pause(2)
    expect(all(agent.is_running() for agent in agents), "a node ended before the run")
    cluster.finish(1 - early)
    cluster.end_all(0)
    expect(len(cluster.rounds()) == 1 and cluster.rounds()[0].pids == one.pids, "a new round")


@case("a node that has finished joins the next round when another fails with restarts left")
def finished_again(cluster: Cluster):
    cluster.flags |= {"nnodes": "2", "max-restarts": "1"}
    agents = cluster.start_many(2)
    first = cluster.wait_for_round(agents)
    cluster.finish(0)
    early = next(agent for agent in agents if first.rank_of(agent) == 0)
    cluster.wait_for(lambda: not processes.is_alive(first.pids[0]), "end of rank 0")
    pause(0.3)
    (cluster.folder / "finish.0").unlink()
    expect(early.is_running(), "the node that finished ended before the run")
    cluster.fail(1, first.number, 9)
    cluster.wait_for_round(agents, after=first)
    cluster.finish()
    cluster.end_all(0)


@case("an agent that joins after the run has succeeded exits 0 and says so")
def late_agent(cluster: Cluster):
    cluster.flags["nnodes"] = "1:2"
    cluster.conf |= {"is_host": "false", "last_call_timeout": "0.2"}
    cluster.start_daemon()
    agent = cluster.start()
    cluster.wait_for_round([agent])
    detour = free_port()  # no server listens on this port until the run is over
    late = cluster.start(rdzv_endpoint=f"{cluster.host}:{detour}")
    cluster.wait_for_text(late, "run chaos-")
    pause(3)  # the hello contains the age: this agent is older by more than the detour's delay
    cluster.finish()
    expect(agent.end() == 0, f"exit code {agent.process.returncode}")
    with Detour(detour, cluster.port):
        expect(late.end() == 0, f"exit code {late.process.returncode}")
    cluster.wait_for_text(late, "finished with code 0 .* ago")


@case("an agent that starts after the success, with too few for a new run, exits 0")
def after_success(cluster: Cluster):
    cluster.flags["nnodes"] = "1:2"
    cluster.conf |= {"is_host": "false", "last_call_timeout": "0.2"}
    cluster.start_daemon()
    agents = cluster.start_many(2)
    cluster.wait_for_round(agents)
    cluster.finish()
    cluster.end_all(0)
    late = cluster.start()
    expect(late.end() == 0, f"exit code {late.process.returncode}")
    cluster.wait_for_text(late, "finished with code 0 .* ago .* only 1 of 2 nodes joined")


@case("SIGTERM to all agents at once ends all of them, without leftover processes")
def all_terminated(cluster: Cluster):
    cluster.flags |= {"nnodes": "1:3", "nproc-per-node": "2"}
    agents = cluster.start_many(3)
    cluster.wait_for_round(agents)
    for agent in agents:
        agent.send(15)
    cluster.end_all(143)


@case("Ctrl-C on the root, without which too few are left, ends the run on every node")
def root_interrupted(cluster: Cluster):
    cluster.flags |= {"nnodes": "3"}
    root, *others = cluster.start_with_root(3)
    cluster.wait_for_round([root, *others])
    root.send(2)
    cluster.end_all(130)


@case("kill -9 of every agent leaves no worker behind")
def all_killed(cluster: Cluster):
    cluster.flags |= {"nnodes": "3", "nproc-per-node": "2"}
    agents = cluster.start_many(3)
    cluster.wait_for_round(agents)
    for agent in agents:
        agent.send(9)
    cluster.end_all(137)


@case("a rank that hangs while all nodes wait for it takes a restart")
def hang(cluster: Cluster):
    cluster.flags |= {"nnodes": "3", "nproc-per-node": "2", "hang-timeout": "2",
                      "max-restarts": "1"}
    cluster.environment["CHAOS_HANG"] = "3"
    agents = cluster.start_with_root(3)
    one = cluster.wait_for_round(agents)
    two = cluster.wait_for_round(agents, after=one)
    expect(two.restarts == 1, f"restart count {two.restarts}")
    for agent in agents:
        expect("warning [HANG] " in agent.text(), f"{agent.name} does not say why")
    cluster.finish()
    cluster.end_all(0)


@case("a hang without restarts left ends all nodes with one report that names the odd rank")
def hang_ends(cluster: Cluster):
    """No node knows it alone: on its own node it is one of two that are at different places."""
    cluster.flags |= {"nnodes": "2", "nproc-per-node": "2", "hang-timeout": "2"}
    cluster.environment["CHAOS_HANG"] = "3"
    agents = cluster.start_with_root(2)
    cluster.wait_for_round(agents)
    cluster.end_all(114)
    report = agents[0].text()
    expect(": 3; 3 ranks: " in report, "the odd rank of all nodes is not named")
    for agent in agents:
        expect(agent.text().count("error [HANG] ") == 1, f"{agent.name} does not report once")


@case("one node whose rank works keeps the others from a hang, until it has finished")
def no_hang(cluster: Cluster):
    cluster.flags |= {"nnodes": "2", "hang-timeout": "1"}
    cluster.environment["CHAOS_CHATTER"] = "1"
    cluster.environment_of["root"] = {"CHAOS_HANG": "-1"}
    agents = cluster.start_with_root(2)
    one = cluster.wait_for_round(agents)
    pause(4)
    expect(all(agent.is_running() for agent in agents), "a hang was seen where a rank works")
    cluster.finish(one.rank_of(agents[1]))
    cluster.end_all(114)
