"""The most demanding cases, repeated with Gloo workers of PyTorch."""

import signal
import sys

import processes
from cases import case, expect
from harness import HERE, Cluster

SECONDS = 90  # importing torch takes seconds on two cores


def with_gloo(cluster: Cluster):
    cluster.worker = [sys.executable, "-u", str(HERE / "gloo_worker.py")]
    cluster.environment |= {"OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}


@case("Gloo: kill -9 of a worker, all ranks connect in the next round", "torch")
def gloo_worker_killed(cluster: Cluster):
    with_gloo(cluster)
    cluster.flags |= {"nnodes": "2", "max-restarts": "3"}
    agents = cluster.start_many(2)
    first = cluster.wait_for_round(agents, seconds=SECONDS)
    processes.kill(first.pids[1])
    second = cluster.wait_for_round(agents, after=first, seconds=SECONDS)
    expect(second.restarts == 1, f"restart count {second.restarts}")
    cluster.finish()
    cluster.end_all(0)


@case("Gloo: an agent is killed and another joins, all ranks connect in every round", "torch")
def gloo_agent_killed(cluster: Cluster):
    with_gloo(cluster)
    cluster.flags |= {"nnodes": "1:2", "max-restarts": "3"}
    agents = cluster.start_with_root(2)
    first = cluster.wait_for_round(agents, seconds=SECONDS)
    agents[1].send(signal.SIGKILL)
    second = cluster.wait_for_round(agents[:1], after=first, seconds=SECONDS)
    expect(second.restarts == 0, f"restart count {second.restarts}")
    newcomer = cluster.start()
    third = cluster.wait_for_round([agents[0], newcomer], after=second, seconds=SECONDS)
    expect(third.restarts == 0, f"restart count {third.restarts}")
    cluster.finish()
    cluster.end_all(0, agents[1])
