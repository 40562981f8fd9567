#!/usr/bin/env python3
"""ddprun as pid 1 of a container: signals, codes, and nothing left but the kernel's own.

    tests/front/pid_one_test.py path/to/ddprun
"""

import os
import signal
import subprocess
import sys
import unittest

from processes_of_run import SHAPES, Run, children_of, stat_of, supervisors_of, wait_for

DDPRUN = ""
USER = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
CONTAINER = ["unshare", *USER, "--pid", "--fork", "--mount-proc", "--kill-child"]
STAY = "echo > $DIR/ready.$RANK; exec sleep 1000"


class PidOne(unittest.TestCase):
    def start(self, script, **more):
        return Run([*CONTAINER, DDPRUN], script, **more)

    def supervisors(self, run):
        """Their pids outside the container."""
        front = wait_for(lambda: [pid for pid in children_of(run.process.pid)
                                  if stat_of(pid)[0] == "ddprun"], "front")[0]
        return supervisors_of(front)

    def check_end(self, run, code):
        self.assertEqual(run.end(), code, run.text())
        run.check_nothing_left()

    def test_the_code_of_a_worker_is_passed_on(self):
        with self.start("exit 7") as run:
            self.check_end(run, 7)

    def test_each_stop_signal_that_the_container_gets_stops_the_run(self):
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
            with self.start(STAY) as run:
                front, _, _ = self.supervisors(run)
                wait_for(lambda: all(run.path(f"ready.{rank}").exists() for rank in (0, 1)),
                         "workers")
                os.kill(front, number)
                self.check_end(run, 128 + number)
                self.assertIn("from a process outside this PID namespace", run.text())

    def test_every_end_is_followed_by_none_of_what_workers_left(self):
        for shape, (script, sleeps) in SHAPES.items():
            with self.subTest(worker=shape), self.start(script, sleeps=sleeps) as run:
                _, _, agent = self.supervisors(run)
                wait_for(lambda: run.count("sleep") == sleeps * run.ranks, "worker processes")
                run.kill([agent])
                self.check_end(run, 137)
                self.assertIn("was killed by SIGKILL", run.text())

    def test_no_zombie_stays_while_workers_leave_orphans(self):
        script = ("i=0; while [ $i -lt 50 ]; do (true &); i=$((i + 1)); done; "
                  "echo > $DIR/ready.$RANK; until [ -e $DIR/go ]; do sleep 0.01; done")
        with self.start(script) as run:
            front, guard, agent = self.supervisors(run)
            wait_for(lambda: all(run.path(f"ready.{rank}").exists() for rank in (0, 1)), "workers")
            wait_for(lambda: not zombies_of({front, guard, agent}), "end of the zombies")
            run.path("go").touch()
            self.check_end(run, 0)


def zombies_of(parents):
    found = (stat_of(int(pid)) for pid in filter(str.isdigit, os.listdir("/proc")))
    return [stat for stat in found if stat[1] == "Z" and stat[2] in parents]


if __name__ == "__main__":
    DDPRUN = os.path.abspath(sys.argv[1])
    probe = subprocess.run([*CONTAINER, "true"], stderr=subprocess.PIPE, text=True, check=False)
    if probe.returncode != 0:
        print("no PID namespace for this user:", probe.stderr.strip())
        sys.exit(77)
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
