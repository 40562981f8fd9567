"""The program itself, with --recover, over the link of ddprun: the test plays the agent.

rounds_test.py CASE, one of the functions below.
"""

import os
import pathlib
import re
import signal
import subprocess
import sys

import harness

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "worker_api"))
from fake_agent import SURVIVES, FakeAgent, end, joined, push, receive, variables_of  # noqa: E402

FLAGS = ["--deterministic", 4, "--epochs", 2, "--log-every", 1, "--checkpoint-every", "off"]


class Run:
    def __init__(self, agent, *flags):
        command = harness.generated(harness.folder(), *FLAGS, *flags)
        self.command = [str(word) for word in command]
        self.agent, self.links, self.number, self.store = agent, {}, 0, None

    def end(self):
        if self.store:
            self.store.close()

    def round_of(self, processes):
        """A new round of these processes; None is one that is started. Returns all."""
        self.number += 1
        self.end()
        self.store = harness.Store()
        world = len(processes)
        rounds = [
            variables_of(rank, world, self.number, self.store.port) for rank in range(world)
        ]
        for process, variables in zip(processes, rounds):
            if process is not None:
                push(self.links[process], self.number, variables)
        started = [
            process or self.start(variables) for process, variables in zip(processes, rounds)
        ]
        for process in processes:
            if process is not None:
                assert joined(self.links[process]) == self.number
        return started

    def start(self, variables):
        environment = dict(os.environ, DDPRUN_WORKER_SOCKET=self.agent.path,
                           DDPRUN_SURVIVORS="1", **variables)
        process = subprocess.Popen(
            self.command, env=environment, stdout=subprocess.PIPE, text=True
        )
        self.agent.callback(end, process)
        self.links[process] = self.agent.accept()
        receive(self.links[process], SURVIVES)
        return process


def until(process, start):
    for line in process.stdout:
        if line.startswith(start):
            return
    raise AssertionError(f"never saw {start!r}")


def finish(processes):
    outputs = [process.communicate(timeout=harness.LIMIT_S)[0] for process in processes]
    assert [process.returncode for process in processes] == [0] * len(processes), outputs
    return outputs[0]


def undisturbed():
    return harness.weights_of(harness.run_ranks(1, harness.generated(harness.folder(), *FLAGS)))


def a_killed_rank_is_replaced():
    with FakeAgent("") as agent:
        run = Run(agent, "--recover")
        first, second, third = run.round_of([None] * 3)
        until(first, "train step 6/")
        second.kill()
        output = finish(run.round_of([first, None, third]))
    assert re.search("^recovered: 3 ranks continue at step ", output, re.MULTILINE), output
    assert harness.weights_of(output) == undisturbed()


def a_stopped_rank_does_not_block_the_others():
    with FakeAgent("") as agent:
        run = Run(agent, "--recover")
        first, second, third = run.round_of([None] * 3)
        until(first, "train step 6/")
        second.send_signal(signal.SIGSTOP)
        output = finish(run.round_of([first, third]))
        assert second.poll() is None
    assert re.search("^recovered: 2 ranks continue at step ", output, re.MULTILINE), output
    assert harness.weights_of(output) == undisturbed()


if __name__ == "__main__":
    globals()[sys.argv[1]]()
