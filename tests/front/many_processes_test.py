#!/usr/bin/env python3
"""Ranks with many processes, beside many others on the machine: their stop costs what they are, not
what the machine is, and the agent's event loop has short turns.

    tests/front/many_processes_test.py path/to/ddprun
"""

import json
import os
import pathlib
import signal
import sys
import threading
import time
import unittest

from processes_of_run import Run, stat_of, supervisors_of, wait_for

DDPRUN = ""
RANKS, CHILDREN = 8, 64
OTHERS = int(os.environ.get("DDPRUN_TEST_OTHERS", "1500"))
TURN_MAX = 0.1  # seconds of processor time; in a Release build half of it
TICKS = os.sysconf("SC_CLK_TCK")


def cpu_of(pid):
    """None: it is gone."""
    try:
        fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return (int(fields[11]) + int(fields[12])) / TICKS


class Others:
    """Idle processes outside the run."""

    def __enter__(self):
        self.pids = []
        for _ in range(OTHERS):
            pid = os.fork()
            if pid == 0:
                signal.pause()
            self.pids.append(pid)

    def __exit__(self, *_):
        for pid in self.pids:
            os.kill(pid, signal.SIGKILL)
        for pid in self.pids:
            os.waitpid(pid, 0)


class ManyProcesses(unittest.TestCase):
    def stop(self, script, cgroups):
        """The agent's processor time for the stop, and the events."""
        os.environ["DDPRUN_NO_CGROUP"] = "0" if cgroups else "1"
        start = f"i=0; while [ $i -lt {CHILDREN} ]; do {script} & i=$((i + 1)); done; "
        body = start + ("if [ $RANK = 0 ]; then until [ -e $DIR/go ]; do sleep 0.05; done; exit 3; "
                        "fi; wait")
        logs = ["--log-dir=/dev/shm/ddprun-many-" + str(os.getpid())]
        with Run(DDPRUN, body, logs, ranks=RANKS) as run:
            agent = supervisors_of(run.process.pid)[2]
            wait_for(lambda: run.count("sleep") >= RANKS * CHILDREN, "children", 120)
            before = last = cpu_of(agent)
            run.path("go").touch()
            began = time.monotonic()
            while (now := cpu_of(agent)) is not None and stat_of(agent)[1] not in ("", "Z"):
                last = now
                threading.Event().wait(0.005)
            took = time.monotonic() - began
            self.assertEqual(run.end(60), 3, run.text())
            run.check_nothing_left()
            folder = pathlib.Path(logs[0][len("--log-dir="):])
            events = [json.loads(line) for path in folder.glob("*/events.jsonl")
                      for line in path.read_text().splitlines()]
            for path in sorted(folder.rglob("*"), reverse=True):
                path.rmdir() if path.is_dir() else path.unlink()
            folder.rmdir()
            return last - before, took, events

    def test_the_stop_costs_what_the_ranks_are(self):
        with Others():
            for script in ("sleep 1000", "setsid sleep 1000"):
                for cgroups in (True, False):
                    with self.subTest(script=script, cgroups=cgroups):
                        cpu, took, events = self.stop(script, cgroups)
                        (end,) = [event for event in events if event["event"] == "end"]
                        slow = [e["cpu_ms"] for e in events if e["event"] == "slow_turn"]
                        turn = end["longest_turn_ms"]
                        print(f"{RANKS} x {CHILDREN} of `{script}`, cgroups {cgroups}, {OTHERS} "
                              f"others: cpu {cpu:.2f} s, stop {took:.2f} s, longest turn "
                              f"{turn:.1f} ms, cpu of long turns {slow} ms", flush=True)
                        self.assertLess(cpu, 1.0)  # it was 4.6 s beside 2,500 others
                        self.assertLess(max(slow, default=0) / 1000, TURN_MAX)


if __name__ == "__main__":
    DDPRUN = os.path.abspath(sys.argv.pop(1))
    unittest.main(verbosity=2)
