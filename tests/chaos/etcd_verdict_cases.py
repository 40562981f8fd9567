"""What a run leaves in etcd, and whom it concerns: nodes that come late, or ask for other terms."""

import signal

from cases import case, expect
from etcd_cases import SECONDS, etcd_run, leader_key, leading, record
from harness import Cluster
import processes


@case("etcd: a verdict outlives every node that hears it and ends each one that comes back", "etcd")
def verdict_stays(cluster: Cluster):
    with etcd_run(cluster, "1:3", servers=1) as etcd:
        agents = cluster.start_many(3)
        first = cluster.wait_for_round(agents, seconds=SECONDS)
        alone = leading(cluster, etcd)
        sleepers = [agent for agent in agents if agent is not alone]
        for sleeper in sleepers:
            sleeper.send(signal.SIGSTOP)
        second = cluster.wait_for_round([alone], after=first, seconds=SECONDS)
        cluster.fail(0, second.number, 3)
        # It keeps the store of round 1 for the ranks of the others, up to 19 s and the grace.
        expect(alone.end(SECONDS) == 3, "the exit code of the node whose rank failed")
        rounds = len(cluster.rounds())
        for sleeper in sleepers:  # one after the other: each is the only node that is awake
            sleeper.send(signal.SIGCONT)
            expect(sleeper.end(SECONDS) == 3, f"{sleeper.name} did not hear the verdict")
            expect(record(cluster, etcd)["over"]["exit_code"] == 3, f"{record(cluster, etcd)}")
        expect(len(cluster.rounds()) == rounds, "a round after the verdict")
        again = cluster.start_many(1)
        third = cluster.wait_for_round(again, seconds=SECONDS)
        expect(third.number > second.number, "the number of a round was used before")
        left = record(cluster, etcd)
        expect("over" not in left and left["before"][-1]["exit_code"] == 3, f"record {left}")
        cluster.finish()
        expect(again[0].end() == 0, "the exit code of the new run")


@case("etcd: a node with other terms is not elected between two coordinators", "etcd")
def other_terms(cluster: Cluster):
    with etcd_run(cluster, servers=1) as etcd:
        cluster.conf["last_call_timeout"] = "1"
        leader = cluster.start()
        leading(cluster, etcd)
        never = ",".join(f"{k}={v}" for k, v in (cluster.conf | {"is_host": "false"}).items())
        member = cluster.start(rdzv_conf=never)
        first = cluster.wait_for_round([leader, member], seconds=SECONDS)
        cluster.wait_for(lambda: record(cluster, etcd).get("terms"), "terms in the record")
        leader.send(signal.SIGKILL)
        cluster.wait_for(lambda: etcd.value(leader_key(cluster)) is None, "end of the lease")
        other = cluster.start(hang_timeout="60")
        expect(other.end(SECONDS) == 111, "the exit code of a node with other terms")
        cluster.wait_for_text(other, r"has no --hang-timeout, \S+ has --hang-timeout")
        expect(etcd.value(leader_key(cluster)) is None, "a node with other terms coordinates")
        expect(all(map(processes.is_alive, first.pids_of(member))), "the run was disturbed")
        fits = cluster.start()
        cluster.wait_for_round([member, fits], after=first, seconds=SECONDS)
        cluster.finish()
        cluster.end_all(0, leader, other)


@case("etcd: another command under the id of a run that succeeded is not late for it", "etcd")
def other_command(cluster: Cluster):
    with etcd_run(cluster, "1:3", servers=1) as etcd:
        cluster.conf["last_call_timeout"] = "1"
        agents = cluster.start_many(2)
        first = cluster.wait_for_round(agents, seconds=SECONDS)
        cluster.finish()
        cluster.end_all(0)
        over = record(cluster, etcd)["over"]
        late = cluster.start()
        expect(late.end(SECONDS) == 0, "the exit code of a late node")
        expect(record(cluster, etcd)["over"] == over, f"record {record(cluster, etcd)}")
        cluster.forget()
        cluster.worker.append("another-command")
        other = cluster.start()
        second = cluster.wait_for_round([other], seconds=SECONDS)
        expect(second.number > first.number, "the number of a round was used before")
        cluster.finish()
        expect(other.end() == 0, "the exit code of the other command")
