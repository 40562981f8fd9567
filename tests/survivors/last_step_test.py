#!/usr/bin/env python3
"""--restart=failed with real processes: nodes join as the ranks of a run exit with 0.

python3 tests/survivors/last_step_test.py path/to/ddprun path/to/ddprun-rdzvd
"""
import sys
import unittest

from runs import HUNG, Runs, eventually


class LastStep(Runs):
    def begin(self, *behaviour):
        """A node runs alone; ranks of its first round behave so."""
        self.port, _ = self.coordinator()
        self.behaviour = behaviour
        self.first = self.another()
        self.workers = self.round(1, ranks=2)

    def another(self):
        return self.node(self.port, ranks=2, behaviour=self.behaviour)

    def assert_success(self, nodes):
        """That of the first node's ranks, whatever was started again meanwhile."""
        said = "".join(self.said(node) for node in nodes)
        for node in nodes:
            self.assertEqual(node.wait(HUNG), 0, said)
            self.assertRegex(self.said(node),
                             "all 2 ranks on 1 node exited with code 0.*; 0 restarts")
        self.assert_nothing_left()

    def test_ranks_that_finish_as_a_node_joins_end_the_run(self):
        self.begin("done:0", "done:1")
        self.assert_success([self.first, self.another()])

    def test_a_rank_that_had_finished_already_counts(self):
        self.begin("done:0", "go:1")
        (self.rounds / "go").touch()
        self.assertTrue(eventually(lambda: self.events("worker_exited")))
        self.assert_success([self.first, self.another()])

    def test_a_rank_that_finishes_alone_is_started_again_with_the_others(self):
        self.begin("done:1")
        other = self.another()
        second = self.round(2)
        self.assertIn(self.pid_of(self.workers, 0), second)
        self.assertNotIn(self.pid_of(self.workers, 1), second)
        for one in (self.first, other):
            self.assertIn("0 restarts", self.finish(one))
        self.assert_nothing_left()


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
