#!/usr/bin/env python3
"""Real ranks of torch 2.15 over Gloo: one is killed in the middle of collectives, the others are
pushed the next round, and continue with a new rank or without it. The test plays the agent and
serves a new store for each round.

python3 tests/worker_api/reconfigure_test.py path/to/build/python [rounds]
"""

import datetime
import os
import sys
import time
import unittest

import torch.distributed as dist
from fake_agent import SURVIVES, FakeAgent, joined, push, receive, variables_of

PYTHON_DIR = os.path.abspath(sys.argv[1]) if len(sys.argv) > 1 else ""
ROUNDS = int(sys.argv[2]) if len(sys.argv) > 2 else 4

TRAINS = """
import ddprun
ddprun.survive()  # first: the test waits for this, and the imports take long on a busy machine
import torch, torch.distributed as dist
torch.set_num_threads(1)
x = torch.ones(1 << 18)
while world := ddprun.next_round(timeout=600):
    try:
        ddprun.reconfigure(world)
        step = torch.zeros(1)
        while True:
            dist.all_reduce(x.fill_(1))
            assert x[0] == world.world_size and dist.get_rank() == world.rank
            if step == 0: print("round", world.round, flush=True)
            step += 1
    except RuntimeError as error:
        print("left", world.round, flush=True)
"""


def store():
    limit = datetime.timedelta(seconds=60)
    return dist.TCPStore("127.0.0.1", 0, None, True, limit, wait_for_workers=False)


class Reconfigure(unittest.TestCase):
    def setUp(self):
        self.agent = FakeAgent(PYTHON_DIR)
        self.addCleanup(self.agent.close)
        self.links = {}

    def start(self, rank, world, number, port):
        process = self.agent.start(TRAINS, {**variables_of(rank, world, number, port),
                                            "OMP_NUM_THREADS": "1"})
        link = self.agent.accept()
        receive(link, SURVIVES)
        self.links[process] = link
        return process

    def reaches(self, ranks, number):
        for process in ranks:
            while (line := process.stdout.readline()) != f"round {number}\n":
                self.assertNotEqual(line, "", "the worker has ended")

    def test_ranks_that_are_blocked_continue_with_another_one_and_without_it(self):
        present = store()
        ranks = [self.start(rank, 4, 1, present.port) for rank in range(4)]
        self.reaches(ranks, 1)
        took = []
        for number in range(2, ROUNDS + 2):
            replaces = number % 2 == 0
            killed = ranks[number % len(ranks)]
            survivors = [rank for rank in ranks if rank is not killed]
            began = time.monotonic()
            killed.kill()
            present = store()  # the one of the round before is gone
            world = ranks if replaces else survivors
            for place, process in enumerate(world):
                if process is not killed:
                    push(self.links[process], number,
                         variables_of(place, len(world), number, present.port))
            ranks = [self.start(place, len(world), number, present.port) if process is killed
                     else process for place, process in enumerate(world)]
            for process in survivors:
                self.assertEqual(joined(self.links[process]), number)
            self.reaches(ranks, number)
            if not replaces:
                took.append(round(1000 * (time.monotonic() - began)))
        print("SIGKILL to the first all-reduce of a smaller world, ms:", took)


if __name__ == "__main__":
    if not hasattr(dist.distributed_c10d, "ReconfigureOptions"):
        print("skipped: this torch has no reconfigure")
        sys.exit(77)
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
