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
        """No rank was started again: the run trained with these processes alone."""
        said = "".join(self.said(node) for node in nodes)
        for node in nodes:
            self.assertEqual(node.wait(HUNG), 0, said)
            self.assertRegex(self.said(node),
                             "all 2 ranks on 1 node exited with code 0.*; 0 restarts")
        self.assertNotIn("started again", said)
        with_state = [pid for number in (1, 2, 3) for pid, one in self.takers(number).items()
                      if int(one["RANK"]) < 2]
        self.assertEqual(sorted(with_state), sorted(self.workers))
        self.assert_nothing_left()

    def test_ranks_that_finish_as_a_node_joins_end_the_run(self):
        self.begin("done:0", "done:1")
        self.assert_success([self.first, self.another()])

    def test_a_rank_that_has_finished_already_is_not_started_again(self):
        self.begin("done:0", "go:1")
        (self.rounds / "go").touch()
        self.assertTrue(eventually(lambda: self.events("worker_exited")))
        self.assert_success([self.first, self.another()])

    def test_a_rank_that_finishes_alone_is_started_again_with_the_others(self):
        self.begin("done:1")
        other = self.another()
        third = self.round(3)
        self.assertIn(self.pid_of(self.workers, 0), third)
        self.assertNotIn(self.pid_of(self.workers, 1), third)
        for one in (self.first, other):
            self.assertIn("0 restarts", self.finish(one))
        self.assert_nothing_left()


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
