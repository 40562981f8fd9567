#!/usr/bin/env python3
"""Workers that leave processes behind in every way known: all of them end with their round.

    tests/front/left_behind_test.py path/to/ddprun path/to/proc_probe
"""

import itertools
import os
import pathlib
import re
import resource
import signal
import sys
import time
import unittest

from freezer import Freezer
from processes_of_run import SHAPES, Run, stat_of, wait_for

DDPRUN, PROBE = "", ""
REPEATS = int(os.environ.get("DDPRUN_TEST_REPEATS", "1"))
CHILDREN = SHAPES["16 children in three sessions"][0].removesuffix("wait")
READY = "until [ $(ls $DIR/ready 2> /dev/null | wc -l) = 1 ]; do sleep 0.01; done; "


def environment_of(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return b""


class LeftBehind(unittest.TestCase):
    cgroups = True

    def run_of(self, script, options=(), **more):
        """Nothing else in this test's process starts a ddprun meanwhile."""
        os.environ["DDPRUN_NO_CGROUP"] = "0" if self.cgroups else "1"
        return Run(DDPRUN, script, options, **more)

    def check(self, run, code):
        self.assertEqual(run.end(), code, run.text())
        run.check_nothing_left()

    def test_sixteen_children_in_three_sessions(self):
        ends = {"exit 3": 3, "exit 0": 0, "kill -9 $$$$": 137, "exec sleep 1000": 143}
        for end, code in ends.items():
            for _ in range(REPEATS):
                with self.subTest(end=end):
                    script = CHILDREN + READY + end
                    with self.run_of(script, ["--straggler-timeout=1"], ranks=2) as run:
                        wait_for(lambda: run.count("sleep") >= 32, "children")
                        run.path("ready").touch()
                        if code == 143:
                            wait_for(lambda: run.count("sleep") >= 34, "workers")
                            run.process.send_signal(signal.SIGTERM)
                        self.check(run, code)
                        gone = re.search(r"\[CLEANUP\] (?:\d workers? \+ )?(\d+) descendants gone",
                                         run.text())
                        self.assertIsNotNone(gone, run.text())
                        if end != "exec sleep 1000" or self.cgroups:
                            self.assertGreaterEqual(int(gone.group(1)), 16)

    def test_a_restart_begins_when_nothing_of_the_old_round_lives(self):
        script = ("if [ $DDPRUN_ROUND = 2 ]; then echo > $DIR/second; "
                  "until [ -e $DIR/go ]; do sleep 0.01; done; exit 0; fi; " + CHILDREN + READY +
                  "exit 3")
        for _ in range(REPEATS):
            with self.run_of(script, ["--max-restarts=1"], ranks=1) as run:
                wait_for(lambda: run.count("sleep") >= 16, "children")
                run.path("ready").touch()
                wait_for(lambda: run.path("second").exists(), "second round")
                old = [pid for pid in run.left() if b"DDPRUN_ROUND=1" in environment_of(pid)]
                self.assertEqual([stat_of(pid) for pid in old], [])
                run.path("go").touch()
                self.check(run, 0)

    def test_what_has_moved_to_another_cgroup_ends_before_the_restart(self):
        with open("/proc/self/mountinfo", encoding="utf-8") as mounts:
            roots = [line.split()[4] for line in mounts if " - cgroup2 " in line]
        procs = pathlib.Path(roots[0] if roots else "/nowhere") / "cgroup.procs"
        if not os.access(procs, os.W_OK):
            self.skipTest("no cgroup v2 hierarchy that can be written")
        script = ("if [ $DDPRUN_ROUND = 2 ]; then echo > $DIR/second; "
                  "until [ -e $DIR/go ]; do sleep 0.01; done; exit 0; fi; "
                  f"sh -c 'echo $$$$ > {procs}; echo > $DIR/moved; exec sleep 1000' & "
                  "until [ -e $DIR/moved ]; do sleep 0.01; done; exit 3")
        for ranks in (1, 2):
            with self.run_of(script, ["--max-restarts=1"], ranks=ranks) as run:
                wait_for(lambda: run.path("second").exists(), "second round")
                old = [pid for pid in run.left() if b"DDPRUN_ROUND=1" in environment_of(pid)]
                self.assertEqual([stat_of(pid) for pid in old], [])
                run.path("go").touch()
                self.check(run, 0)

    def test_children_that_ignore_sigterm_are_killed_and_named(self):
        script = ("setsid sh -c 'trap \"\" TERM; echo > $DIR/deaf; while :; do sleep 0.05; done' & "
                  "until [ -e $DIR/deaf ]; do sleep 0.01; done; exit 3")
        with self.run_of(script, ["--shutdown-timeout=1"], ranks=1) as run:
            self.check(run, 3)
            self.assertRegex(run.text(), r"\(sh.*behind; sending SIGKILL")

    def test_a_fork_loop(self):
        for what, end in itertools.product(("fork-loop", "fork-loop-in-sessions"), (0, 3)):
            for _ in range(REPEATS):
                with self.subTest(what=what, end=end):
                    # The loop says so when it is under way.
                    script = (f"'{PROBE}' {what} > $DIR/loop & "
                              f"until [ -s $DIR/loop ]; do sleep 0.01; done; exit {end}")
                    options = ["--straggler-timeout=0", "--shutdown-timeout=1"]
                    with self.run_of(script, options, ranks=1) as run:
                        self.check(run, end)
                        # The program is bounded: 9000 forks, 5 s.
                        self.assertNotIn("ended by itself", run.path("loop").read_text())

    def test_what_cannot_die_is_named_and_the_rest_goes_on(self):
        with Freezer(self) as freezer:
            script = (f"if [ $RANK = 0 ]; then {freezer.enter}; echo > $DIR/in; exec sleep 1000; "
                      "fi; until [ -e $DIR/ready ]; do sleep 0.01; done; exit 3")
            options = ["--shutdown-timeout=1", "--max-restarts=1"]
            with self.run_of(script, options, ranks=2) as run:
                wait_for(lambda: run.path("in").exists() and run.count("sleep") >= 1, "rank 0")
                freezer.freeze()
                run.path("ready").touch()
                began = time.monotonic()
                self.assertEqual(run.end(), 3, run.text())  # of rank 1, which failed first
                self.assertIn("not restarted: rank 0", run.text())
                self.assertLess(time.monotonic() - began, 20)
                self.assertIn("[W-UNKILLABLE] rank 0", run.text())
                self.assertRegex(run.text(), r"evidence  pid \d+ \(sleep\): state D")
                freezer.thaw()
                run.check_nothing_left()

    def test_a_spawn_failure_at_one_of_300_ranks_leaves_none(self):
        def few_descriptors():
            resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))
        with self.run_of("setsid sleep 1000 & exec sleep 1000", ranks=300,
                         preexec_fn=few_descriptors) as run:
            self.assertNotEqual(run.end(), 0)
            run.check_nothing_left()
            self.assertEqual(run.text().count("error [EXEC]"), 1, run.text())
            self.assertIn("ulimit -n", run.text())


class LeftBehindWithoutCgroups(LeftBehind):
    cgroups = False


if __name__ == "__main__":
    PROBE = os.path.abspath(sys.argv.pop(2))
    DDPRUN = os.path.abspath(sys.argv.pop(1))
    unittest.main(verbosity=2)
