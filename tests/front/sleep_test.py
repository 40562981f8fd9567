#!/usr/bin/env python3
"""TORCHELASTIC_UNINTERRUPTIBLE_STATE_TIMEOUT: a worker in uninterruptible sleep ends the run.

    tests/front/sleep_test.py path/to/ddprun
"""

import os
import sys
import threading
import unittest

from freezer import Freezer
from processes_of_run import Run, wait_for
from sentences import kInSleep

DDPRUN = ""
VARIABLE = "TORCHELASTIC_UNINTERRUPTIBLE_STATE_TIMEOUT"
OPTIONS = ["--shutdown-timeout=1", "--max-restarts=3"]


class Sleep(unittest.TestCase):
    def tearDown(self):
        os.environ.pop(VARIABLE, None)

    def run_with(self, limit, freezer, rest, options=()):
        """Rank 1 waits in the freezer for $DIR/go, then does `rest`, as does rank 0."""
        os.environ[VARIABLE] = limit
        script = (f"if [ $RANK = 1 ]; then {freezer.enter}; echo > $DIR/in; fi; "
                  f"until [ -e $DIR/go ]; do sleep 0.01; done; {rest}")
        run = Run(DDPRUN, script, [*OPTIONS, *options], ranks=2)
        wait_for(run.path("in").exists, "rank 1")
        wait_for(lambda: "2 ranks" in run.text(), "start")
        return run

    def check_report(self, run):
        self.assertRegex(run.text(), r"error \[SLEEP\] rank 1 \(local 1, pid \d+\) on \S+ has"
                                     rf"{kInSleep}\d.*\({VARIABLE}\)\n")
        self.assertRegex(run.text(), r"evidence  rank 1 \(local 1, pid \d+\) on \S+: state D")
        self.assertIn("not restarted: what holds it in the kernel", run.text())

    def test_a_worker_that_wakes_up_when_the_run_is_stopped(self):
        with Freezer(self) as freezer, self.run_with("0.5", freezer, "exit 0") as run:
            freezer.freeze()
            wait_for(lambda: "warning [SLEEP]" in run.text(), "warning")
            freezer.thaw()
            self.assertEqual(run.end(), 117, run.text())
            self.check_report(run)
            self.assertNotIn("restart 1 of 3", run.text())
            run.check_nothing_left()

    def test_a_worker_that_survives_sigkill(self):
        with Freezer(self) as freezer, self.run_with("0.5", freezer, "exit 0") as run:
            freezer.freeze()
            self.assertEqual(run.end(), 117, run.text())
            self.check_report(run)
            self.assertIn("[W-UNKILLABLE] rank 1", run.text())
            freezer.thaw()
            run.check_nothing_left()

    def test_a_worker_that_sleeps_for_less_is_left_alone(self):
        with Freezer(self) as freezer, self.run_with("2", freezer, "exit 0") as run:
            for _ in range(3):  # together more than the limit
                freezer.freeze()
                threading.Event().wait(0.9)
                freezer.thaw()
                threading.Event().wait(0.6)
            run.path("go").touch()
            self.assertEqual(run.end(), 0, run.text())
            self.assertNotIn("SLEEP", run.text())

    def test_without_the_variable_state_d_may_last(self):
        for off in ("", "0", "-1", "soon"):
            with self.subTest(value=off), Freezer(self) as freezer:
                with self.run_with(off, freezer, "exit 0") as run:
                    freezer.freeze()
                    threading.Event().wait(1)
                    freezer.thaw()
                    run.path("go").touch()
                    self.assertEqual(run.end(), 0, run.text())
                    self.assertNotIn("SLEEP", run.text())


if __name__ == "__main__":
    DDPRUN = os.path.abspath(sys.argv.pop(1))
    unittest.main(verbosity=2)
