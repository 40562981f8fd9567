"""Tests the harness: provokes on one node what a chaos case must detect.

    harness_test.py PATH_TO_DDPRUN
"""

import os
import signal
import sys
import types
import unittest

import processes
from harness import Cluster, Failed, check_round, worlds

TOOLS = types.SimpleNamespace(rdzvd="", program_words=["--no-python"])


class Teeth(unittest.TestCase):
    def found(self, play) -> str:
        """What the harness reports about a run of one node that `play` disturbs."""
        with self.assertRaises(Failed) as failure, Cluster(TOOLS, 1) as cluster:
            cluster.flags |= {"nnodes": "1", "nproc-per-node": "2", "rdzv-endpoint": "None"}
            cluster.flags["rdzv-conf"] = "None"
            play(cluster)
        left = processes.with_mark(f"CHAOS_FOLDER={cluster.folder}")
        self.assertEqual(left, [], "the harness itself left processes behind")
        self.assertFalse(cluster.folder.exists())
        return str(failure.exception)

    def test_a_wrong_exit_code(self):
        def play(cluster):
            agent = cluster.start()
            one = cluster.wait_for_round([agent])
            cluster.fail(1, one.number, 7)
            cluster.end_all(0)
        story = self.found(play)
        self.assertIn("exit codes {'agent0': 7}, expected 0", story)
        self.assertIn("round 1 rank 1 of 2 on agent0", story)

    def test_an_agent_that_hangs(self):
        def play(cluster):
            agent = cluster.start()
            cluster.wait_for_round([agent])
            agent.send(signal.SIGSTOP)
            cluster.finish()
            cluster.end_all(0, seconds=0.3)
        self.assertIn("hang: agent0", self.found(play))

    def test_a_round_that_does_not_come(self):
        def play(cluster):
            agent = cluster.start()
            first = cluster.wait_for_round([agent])
            cluster.wait_for_round([agent], after=first, seconds=0.3)
        self.assertIn("hang: no a round on agent0", self.found(play))

    def test_a_round_expected_of_an_agent_that_ended(self):
        def play(cluster):
            agent = cluster.start()
            first = cluster.wait_for_round([agent])
            cluster.finish()
            cluster.wait_for_round([agent], after=first)
        self.assertIn("agent0 exited although its round was expected", self.found(play))

    def test_an_agent_that_still_runs_at_the_end(self):
        def play(cluster):
            cluster.wait_for_round([cluster.start()])
        self.assertIn("agents still run at the end of the case: ['agent0']", self.found(play))

    def test_a_process_that_was_left_behind(self):
        def play(cluster):
            agent = cluster.start()
            cluster.wait_for_round([agent])
            os.posix_spawn("/bin/sleep", ["sleep", "60"], dict(os.environ, **cluster.environment))
            cluster.finish()
            cluster.end_all(0)
        self.assertIn("processes left behind: [", self.found(play))

    def test_workers_of_one_round_that_disagree(self):
        def worker(rank, **more):
            one = {"RANK": rank, "LOCAL_RANK": "0", "WORLD_SIZE": "2", "GROUP_RANK": rank,
                   "GROUP_WORLD_SIZE": "2", "TORCHELASTIC_RESTART_COUNT": "0",
                   "TORCHELASTIC_RUN_ID": "run", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "1",
                   "CHAOS_AGENT": f"agent{rank}"}
            return one | more
        check_round("1", [worker("0"), worker("1")])
        for what, other in (("rank twice", worker("0", CHAOS_AGENT="agent1")),
                            ("rank beyond the world", worker("2")),
                            ("restart counts", worker("1", TORCHELASTIC_RESTART_COUNT="1")),
                            ("stores", worker("1", MASTER_PORT="2")),
                            ("worlds", worker("1", WORLD_SIZE="3")),
                            ("gap", worker("1", CHAOS_AGENT="agent0", LOCAL_RANK="4"))):
            with self.assertRaises(Failed, msg=what):
                check_round("1", [worker("0"), other])

    def test_two_worlds_of_one_number(self):
        def worker(port, met):
            return {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "met": met}
        self.assertEqual(len(worlds("2", [worker("1", 2), worker("1", 2), worker("2", None)])), 2)
        with self.assertRaises(Failed):
            worlds("2", [worker("1", 2), worker("2", 1)])


if __name__ == "__main__":
    TOOLS.launcher = [sys.argv[1]]
    unittest.main(argv=[sys.argv[0], "--verbose", *sys.argv[2:]], warnings="ignore")
