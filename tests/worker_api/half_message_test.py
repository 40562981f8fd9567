#!/usr/bin/env python3
"""Real torch over Gloo: a peer is killed in the middle of a message. Gloo closes the connection and
ends no wait for that message, so only the library can.

python3 tests/worker_api/half_message_test.py path/to/build/python
"""

import datetime
import os
import signal
import sys
import unittest

import torch.distributed as dist
from fake_agent import HUNG, SURVIVES, FakeAgent, joined, push, receive, variables_of

PYTHON_DIR = os.path.abspath(sys.argv[1]) if len(sys.argv) > 1 else ""

# Of two ranks over one connection: the one that is killed (1) and the other one (0). `large` does
# not fit into the buffers of a socket; what comes in with `small` tells that all before it has been
# read. Rank 0 of the second round is alone.
BEGINS = """
import ddprun
ddprun.survive()
import os, signal, torch, torch.distributed as dist
world = ddprun.next_round()
with ddprun.group_sockets():
    dist.init_process_group("gloo", rank=world.rank, world_size=2)
large, small = torch.ones(1 << 24), torch.zeros(1, dtype=torch.int64)
def stop_here():
    os.kill(os.getpid(), signal.SIGSTOP)
def wait_for_stop_of(pid):
    while open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()[0] != "T":
        pass
"""
LEAVES = """
try:
    work.wait()
except RuntimeError as error:
    assert "Connection closed by peer" in str(error), error
else:
    print("the message was whole", flush=True)
ddprun.next_round(timeout=600)
"""
SENDS = BEGINS + """
dist.recv(small, 1)
wait_for_stop_of(small.item())
work = dist.isend(large, 1)
print("half", flush=True)
""" + LEAVES
TAKES_NOTHING = BEGINS + """
work = dist.irecv(large, 0)
dist.send(small.fill_(os.getpid()), 0)
stop_here()
"""
RECEIVES = BEGINS + """
work = dist.irecv(large, 1)
dist.send(small.fill_(os.getpid()), 1)
stop_here()
""" + LEAVES
STOPS_SENDING = BEGINS + """
dist.recv(small, 0)
wait_for_stop_of(small.item())
work = dist.isend(large, 0)
print("half", flush=True)
work.wait()
"""


class HalfMessage(unittest.TestCase):
    def setUp(self):
        self.agent = FakeAgent(PYTHON_DIR)
        self.addCleanup(self.agent.close)

    def begin(self, script, rank, port):
        process = self.agent.start(script, variables_of(rank, 2, 1, port))
        link = self.agent.accept()
        receive(link, SURVIVES)
        return process, link

    def kill_in_the_middle(self, survivor, killed, tells):
        limit = datetime.timedelta(seconds=HUNG)
        store = dist.TCPStore("127.0.0.1", 0, None, True, limit, wait_for_workers=False)
        processes = {}
        processes[survivor], link = self.begin(survivor, 0, store.port)
        processes[killed], _ = self.begin(killed, 1, store.port)
        self.assertEqual(processes[tells].stdout.readline(), "half\n")
        processes[killed].kill()
        processes[killed].wait()
        processes[survivor].send_signal(signal.SIGCONT)
        push(link, 2, variables_of(0, 1, 2, store.port))
        self.assertEqual(joined(link), 2)
        self.assertEqual(processes[survivor].stdout.read(), "")

    def test_a_rank_whose_message_was_sent_in_part_leaves(self):
        self.kill_in_the_middle(SENDS, TAKES_NOTHING, SENDS)

    def test_a_rank_that_has_received_a_part_of_a_message_leaves(self):
        self.kill_in_the_middle(RECEIVES, STOPS_SENDING, STOPS_SENDING)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
