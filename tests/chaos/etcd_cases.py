"""The coordinator is elected in etcd: any node, and any member of etcd, may be lost."""

import contextlib
import os
import signal
import time

import processes
from cases import case, expect
from etcd_servers import Etcd
from harness import Agent, Cluster, Failed, pause
from supervisors import agent_of

TTL = 2  # seconds: keep_alive_interval * keep_alive_max_attempt
SECONDS = 60


@contextlib.contextmanager
def etcd_run(cluster: Cluster, nodes: str = "2:3", servers: int = 3, restarts: int = 0, disk=None):
    """Three members of etcd, and a cluster whose agents use them."""
    with Etcd(cluster.folder, servers, disk=disk) as etcd:
        cluster.flags |= {"nnodes": nodes, "rdzv-backend": "etcd-v3",
                          "rdzv-endpoint": etcd.endpoints, "max-restarts": str(restarts)}
        cluster.conf |= {"keep_alive_interval": "0.4", "keep_alive_max_attempt": "5",
                         "last_call_timeout": "2"}
        yield etcd


def leader_key(cluster: Cluster) -> str:
    return f"/ddprun/{cluster.run_id}/coordinator"


def record(cluster: Cluster, etcd: Etcd) -> dict:
    return etcd.value(f"/ddprun/{cluster.run_id}/run") or {}


def finish_after_restart(cluster: Cluster, agents, first) -> None:
    """A rank fails, which costs one restart and no other round; then the run ends."""
    cluster.fail(0, first.number, 3)
    second = cluster.wait_for_round(agents, after=first, seconds=SECONDS)
    expect(second.restarts == 1, f"restart count {second.restarts}")
    expect(len(cluster.rounds()) == 2, "a round too many")
    cluster.finish()
    cluster.end_all(0)


def leading(cluster: Cluster, etcd: Etcd) -> Agent:
    """The agent that etcd names, and that listens there."""
    def look():
        value = etcd.value(leader_key(cluster))
        if value is None:
            return None
        return next((agent for agent in cluster.agents
                     if agent.is_running()
                     and processes.holds_listener(agent_of(agent.pid), value["port"])), None)
    return cluster.wait_for(look, "an agent that coordinates", SECONDS)


@case("etcd: three nodes elect a coordinator, train, and leave a verdict", "etcd")
def plain(cluster: Cluster):
    with etcd_run(cluster, "3") as etcd:
        agents = cluster.start_many(3)
        cluster.wait_for_round(agents, seconds=SECONDS)
        expect(record(cluster, etcd).get("round") == 1, f"record {record(cluster, etcd)}")
        cluster.finish()
        cluster.end_all(0)
        expect(record(cluster, etcd)["over"]["exit_code"] == 0, f"record {record(cluster, etcd)}")
        expect(etcd.value(leader_key(cluster)) is None, "a coordinator although the run is over")


@case("etcd: kill -9 of the coordinator's node: the others train on, without a restart", "etcd")
def leader_killed(cluster: Cluster):
    with etcd_run(cluster) as etcd:
        agents = cluster.start_many(3)
        first = cluster.wait_for_round(agents, seconds=SECONDS)
        victim = leading(cluster, etcd)
        began = time.monotonic()
        victim.send(signal.SIGKILL)
        survivors = [agent for agent in agents if agent is not victim]
        second = cluster.wait_for_round(survivors, after=first, seconds=SECONDS)
        print(f"next round {time.monotonic() - began:.1f} s after the kill, lease {TTL} s")
        expect(second.restarts == 0, f"restart count {second.restarts}")
        expect(second.number > first.number, "the round's number was used before")
        cluster.finish()
        cluster.end_all(0, victim)


@case("etcd: the coordinator's node is stopped by a signal: another one takes over", "etcd")
def leader_leaves(cluster: Cluster):
    with etcd_run(cluster) as etcd:
        agents = cluster.start_many(3)
        first = cluster.wait_for_round(agents, seconds=SECONDS)
        leaver = leading(cluster, etcd)
        leaver.send(signal.SIGTERM)
        others = [agent for agent in agents if agent is not leaver]
        cluster.wait_for_round(others, after=first, seconds=SECONDS)
        expect(leaver.end() == 143, "the exit code of the node that was stopped")
        cluster.finish()
        cluster.end_all(0, leaver)


@case("etcd: kill -9 of its leader: the same workers train on, and a restart works", "etcd")
def etcd_leader_killed(cluster: Cluster):
    with etcd_run(cluster, "3", restarts=1) as etcd:
        agents = cluster.start_many(3)
        first = cluster.wait_for_round(agents, seconds=SECONDS)
        etcd.kill(etcd.leader())
        etcd.wait_until_it_answers()
        finish_after_restart(cluster, agents, first)


@case("etcd: no quorum: the run trains on and a restart waits until etcd answers", "etcd")
def no_quorum(cluster: Cluster):
    with etcd_run(cluster, "3", restarts=1) as etcd:
        cluster.conf["coordinator_timeout"] = "5"
        agents = cluster.start_many(3)
        first = cluster.wait_for_round(agents, seconds=SECONDS)
        for index in (1, 2):
            etcd.kill(index)
        for agent in agents:
            cluster.wait_for_text(agent, r"does not answer .*workers keep running", SECONDS)
        cluster.fail(0, first.number, 3)
        pause(7)  # longer than the lease and coordinator_timeout
        expect(len(cluster.rounds()) == 1, "a round without a quorum of etcd")
        expect(all(agent.is_running() for agent in agents), "an agent ended")
        for index in (1, 2):
            etcd.start(index)
        second = cluster.wait_for_round(agents, after=first, seconds=SECONDS)
        expect(second.restarts == 1, f"restart count {second.restarts}")
        for agent in agents:
            cluster.wait_for_text(agent, "answers again", SECONDS)
        cluster.finish()
        cluster.end_all(0)


@case("etcd: a coordinator that sleeps past its lease does nothing when it wakes", "etcd")
def leader_sleeps(cluster: Cluster):
    with etcd_run(cluster) as etcd:
        agents = cluster.start_many(3)
        first = cluster.wait_for_round(agents, seconds=SECONDS)
        sleeper = leading(cluster, etcd)
        sleeper.send(signal.SIGSTOP)
        others = [agent for agent in agents if agent is not sleeper]
        second = cluster.wait_for_round(others, after=first, seconds=SECONDS)
        expect(leading(cluster, etcd) is not sleeper, "the sleeper coordinates")
        sleeper.send(signal.SIGCONT)
        third = cluster.wait_for_round(agents, after=second, seconds=SECONDS)
        numbers = [one.number for one in cluster.rounds()]
        expect(len(set(numbers)) == len(numbers), f"a round's number was used twice: {numbers}")
        expect(third.restarts == 0, f"restart count {third.restarts}")
        cluster.wait_for_text(sleeper, "coordinates no more")
        cluster.finish()
        cluster.end_all(0)


@case("etcd: a compaction of its history disturbs nothing", "etcd")
def compaction(cluster: Cluster):
    with etcd_run(cluster, servers=1) as etcd:
        agents = cluster.start_many(3)
        first = cluster.wait_for_round(agents, seconds=SECONDS)
        etcd.compact()
        etcd.kill(0)  # the watches have to begin again, at a revision that is gone
        etcd.start(0)
        etcd.wait_until_it_answers()
        etcd.compact()
        victim = leading(cluster, etcd)
        victim.send(signal.SIGKILL)
        survivors = [agent for agent in agents if agent is not victim]
        cluster.wait_for_round(survivors, after=first, seconds=SECONDS)
        cluster.finish()
        cluster.end_all(0, victim)


@case("etcd: the budget survives a loss of all nodes, and so does the verdict", "etcd")
def budget_survives_everybody(cluster: Cluster):
    with etcd_run(cluster, "2", servers=1, restarts=1) as etcd:
        agents = cluster.start_many(2)
        first = cluster.wait_for_round(agents, seconds=SECONDS)
        cluster.fail(0, first.number, 3)
        second = cluster.wait_for_round(agents, after=first, seconds=SECONDS)
        cluster.wait_for(lambda: record(cluster, etcd).get("restarts") == 1, "record")
        for agent in agents:
            agent.send(signal.SIGKILL)
            agent.end()
        again = cluster.start_many(2)
        third = cluster.wait_for_round(again, after=second, seconds=SECONDS)
        expect(third.restarts == 1, f"restart count {third.restarts}")
        expect(third.number > second.number, f"round {third.number} after {second.number}")
        cluster.fail(1, third.number, 5)
        cluster.end_all(5, *agents)
        expect(record(cluster, etcd)["over"]["exit_code"] == 5, f"record {record(cluster, etcd)}")


@case("etcd: a user needs the right password", "etcd")
def password(cluster: Cluster):
    with etcd_run(cluster, "2", servers=1) as etcd:
        etcd.require_password("trainer", "pa55word")
        secret = cluster.folder / "password"
        secret.write_text("wrong\n")
        secret.chmod(0o600)
        cluster.conf |= {"user": "trainer", "password_file": str(secret)}
        refused = cluster.start()
        expect(refused.end() == 2, "the exit code of a wrong password")
        cluster.wait_for_text(refused, "invalid user ID or password")
        without = cluster.start(rdzv_conf="join_timeout=20")
        expect(without.end() == 2, "the exit code without a user")
        cluster.wait_for_text(without, "user name is empty")
        secret.write_text("pa55word\n")
        agents = cluster.start_many(2)
        cluster.wait_for_round(agents, seconds=SECONDS)
        cluster.finish()
        cluster.end_all(0, refused, without)
        if any("pa55word" in agent.text() for agent in agents):
            raise Failed("the password is on a console")
        expect(os.path.exists(secret), "the password's file is gone")


@case("etcd: SIGTERM to all nodes, or to one that the others need, ends the run with 143", "etcd")
def all_stopped(cluster: Cluster):
    with etcd_run(cluster, "3", servers=1) as etcd:
        agents = cluster.start_many(3)
        cluster.wait_for_round(agents, seconds=SECONDS)
        first = leading(cluster, etcd)
        for agent in [first, *(agent for agent in agents if agent is not first)]:
            agent.send(signal.SIGTERM)
        cluster.end_all(143)
        expect(record(cluster, etcd)["over"]["exit_code"] == 143, f"{record(cluster, etcd)}")
        again = cluster.start_many(3)
        cluster.wait_for_round(again, seconds=SECONDS)
        leading(cluster, etcd).send(signal.SIGTERM)
        for agent in again:
            expect(agent.end() == 143, f"the exit code of {agent.name}")
