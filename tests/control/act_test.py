#!/usr/bin/env python3
"""ddprun signal and ddprun stop; signals to ddprun that are for the ranks of every node.

python3 tests/control/act_test.py path/to/ddprun
"""

import contextlib
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "support"))
from ports import free_port
from runs import DDPRUN, WAITS, Run, eventually, named, standalone

# Says each SIGUSR1 with its rank; ends with SIGTERM.
COUNTS = """
import os, signal, sys
def say(text):
    os.write(1, (text + "\\n").encode())
signal.signal(signal.SIGUSR1, lambda *_: say("USR1 of rank " + os.environ["RANK"]))
say("up")
while True:
    signal.pause()
"""


ENDED_EVERYWHERE = r"^run n2 has ended on every node: "


def lines_of(run, count):
    return sorted(run.process.stdout.readline().strip() for _ in range(count))


class Nodes:
    """Nodes on this machine with two ranks each."""

    def __init__(self, test, *words, count=2, least=2):
        endpoint = f"127.0.0.1:{free_port()}"
        self.runs = []
        for _ in range(count):
            size = f"--nnodes={least}:{count}"
            run = Run(size, "--nproc-per-node=2", "--rdzv-backend=c10d", "--rdzv-id=n2",
                      f"--rdzv-endpoint={endpoint}", "--console=raw", *words, "--no-python",
                      sys.executable, "-c", COUNTS)
            test.addCleanup(run.__exit__)
            self.runs.append(run)
        for run in self.runs:
            run.wait_until_up(ranks=2)
        # All know that all run: no round begins behind what follows.
        for run in self.runs:
            test.assertTrue(eventually(lambda one=run: one.status()["state"] == "running"))

    def ranks(self):
        return [[f"USR1 of rank {rank['rank']}" for rank in run.status()["ranks"]]
                for run in self.runs]


class Signals(unittest.TestCase):
    def test_sigusr1_to_one_ddprun_reaches_every_rank_of_every_node_once(self):
        nodes = Nodes(self)
        expected = nodes.ranks()
        nodes.runs[1].process.send_signal(signal.SIGUSR1)
        for run, ranks in zip(nodes.runs, expected):
            self.assertEqual(lines_of(run, 2), ranks)
        errors = []
        for run in nodes.runs:  # nothing more comes before their end
            run.process.send_signal(signal.SIGTERM)
        for run in nodes.runs:
            out, err = run.process.communicate(timeout=60)
            self.assertEqual(out, "")
            errors.append(err)
        self.assertIn("; passed to 2 ranks here and to 1 other node", errors[1])
        self.assertRegex(errors[0], r"note \[SIGNAL\] SIGUSR1.* on .*; passed to 2 ranks here")

    def test_the_same_signal_to_all_nodes_is_one_signal(self):
        nodes = Nodes(self)
        expected = nodes.ranks()
        for run in nodes.runs:
            run.process.send_signal(signal.SIGUSR1)
        for run, ranks in zip(nodes.runs, expected):
            self.assertEqual(lines_of(run, 2), ranks)
        for run in nodes.runs:
            run.process.send_signal(signal.SIGTERM)
        for run in nodes.runs:
            self.assertEqual(run.process.communicate(timeout=60)[0], "")

    def test_ddprun_signal_reaches_every_rank_of_every_node(self):
        nodes = Nodes(self)
        expected = nodes.ranks()
        told = nodes.runs[0].command("signal", str(nodes.runs[0].process.pid), "usr1")
        self.assertEqual(told.returncode, 0, told.stderr)
        self.assertIn("passed to 2 ranks here and to 1 other node", told.stdout)
        for run, ranks in zip(nodes.runs, expected):
            self.assertEqual(lines_of(run, 2), ranks)

    def test_a_stop_of_one_node_stops_all_ranks_of_all_nodes_within_a_second(self):
        nodes = Nodes(self)
        pids = [rank["pid"] for run in nodes.runs for rank in run.status()["ranks"]]
        began = time.monotonic()
        nodes.runs[1].process.send_signal(signal.SIGTERM)
        gone = lambda pid: not os.path.exists(f"/proc/{pid}")
        self.assertTrue(eventually(lambda: all(gone(pid) for pid in pids)))
        self.assertLess(time.monotonic() - began, 1 + LOADED)
        self.assertEqual(nodes.runs[1].process.wait(60), 143)

    def test_a_signal_that_would_end_ranks_is_refused_unless_it_is_forced(self):
        script = "[ $RANK = 1 ] || trap : USR1; echo up; tail -f /dev/null & wait; wait"
        with standalone("--nproc-per-node=2", "--no-python", "sh", "-c", script) as run:
            run.wait_until_up(ranks=2)
            pid = str(run.process.pid)
            refused = run.command("signal", pid, "USR1")
            self.assertEqual(refused.returncode, 1)
            self.assertIn("SIGUSR1 would end rank 1, which neither handles nor blocks it; "
                          "nothing was sent. --force sends it all the same\n", refused.stderr)
            self.assertEqual(len([rank for rank in run.status()["ranks"] if rank["pid"]]), 2)
            self.assertEqual(run.command("signal", pid, "USR1", "--force").returncode, 0)
            self.assertEqual(run.process.wait(60), 138)

    def test_a_signal_that_is_none_is_a_usage_error(self):
        with standalone("true") as run:
            for words in (["x", "0"], ["x", "65"], ["x", "FOO"], ["x"], []):
                self.assertEqual(run.command("signal", *words).returncode, 2, words)


class Stop(unittest.TestCase):
    def test_stop_ends_a_run_and_waits_for_it(self):
        with named("s1", "sh", "-c", WAITS) as run:
            run.wait_until_up()
            stopped = run.command("stop", "s1")
            self.assertEqual((stopped.returncode, stopped.stdout), (0, "run s1 has ended\n"))
            self.assertEqual(run.process.wait(1), 143)
            self.assertEqual(run.sockets(), [])

    def test_stop_on_a_node_of_an_elastic_run_says_on_how_many_nodes_it_continues(self):
        nodes = Nodes(self, count=3, least=1)
        others = [run for run in nodes.runs if not run.status()["cluster"]]
        one = others[0]
        stopped = one.command("stop", str(one.process.pid))
        self.assertEqual(stopped.returncode, 0, stopped.stderr)
        host = os.uname().nodename
        self.assertEqual(stopped.stdout, f"run n2: {host} left, the run continues on 2 nodes\n")
        self.assertEqual(one.process.wait(60), 143)
        self.assertIn("note [RUN] the run continues on 2 nodes\n", one.process.stderr.read())
        self.assertTrue(eventually(lambda: others[1].status()["state"] == "running"))

    def test_stop_on_the_node_of_the_coordinator_says_that_the_run_continues(self):
        nodes = Nodes(self, count=3, least=1)
        (root,) = [run for run in nodes.runs if run.status()["cluster"]]
        others = [run for run in nodes.runs if run is not root]
        stopped = root.command("stop", str(root.process.pid))
        self.assertEqual(stopped.returncode, 0, stopped.stderr)
        self.assertIn(" left, the run continues on 2 nodes, one of which becomes its coordinator\n",
                      stopped.stdout)
        for run in others:
            self.assertTrue(eventually(
                lambda one=run: one.status()["round"] > 1 and one.status()["state"] == "running"))

    def test_stop_on_a_node_that_the_run_needs_says_that_it_ends(self):
        nodes = Nodes(self)
        (one,) = [run for run in nodes.runs if not run.status()["cluster"]]
        stopped = one.command("stop", str(one.process.pid))
        self.assertEqual(stopped.returncode, 0, stopped.stderr)
        self.assertIn(" left, the run ends on every node\n", stopped.stdout)
        for run in nodes.runs:
            self.assertNotEqual(run.process.wait(60), 0)

    def test_stop_with_all_nodes_ends_an_elastic_run_everywhere(self):
        nodes = Nodes(self, count=3, least=1)
        (root,) = [run for run in nodes.runs if run.status()["cluster"]]
        one = next(run for run in nodes.runs if run is not root)
        stopped = one.command("stop", str(one.process.pid), "--all-nodes")
        self.assertEqual(stopped.returncode, 0, stopped.stderr)
        self.assertRegex(stopped.stdout, ENDED_EVERYWHERE + r"stopped on all nodes "
                         r"from \S+: SIGTERM from ddprun stop --all-nodes \(pid \d+\); exit 143\n$")
        for run in nodes.runs:
            _, err = run.process.communicate(timeout=60)
            self.assertEqual(run.process.returncode, 143, err)

    def test_stop_with_all_nodes_at_the_coordinator_ends_the_run_everywhere(self):
        nodes = Nodes(self, count=3, least=1)
        (root,) = [run for run in nodes.runs if run.status()["cluster"]]
        stopped = root.command("stop", str(root.process.pid), "--all-nodes")
        self.assertEqual(stopped.returncode, 0, stopped.stderr)
        self.assertRegex(stopped.stdout, ENDED_EVERYWHERE)
        for run in nodes.runs:
            _, err = run.process.communicate(timeout=60)
            self.assertEqual(run.process.returncode, 143, err)

    def test_stop_without_a_wait_returns_at_once(self):
        slow = "trap : TERM; echo up; tail -f /dev/null & wait; wait"
        with named("s2", "--shutdown-timeout=2", "sh", "-c", slow) as run:
            run.wait_until_up()
            stopped = run.command("stop", "s2", "--no-wait")
            self.assertEqual((stopped.returncode, stopped.stdout), (0, "run s2 is stopping\n"))
            run.process.communicate(timeout=60)
            self.assertEqual(run.process.returncode, 143)

    def test_a_run_that_has_ended_cannot_be_stopped(self):
        with standalone("true") as run:
            run.process.communicate()
            for words in (["stop", "none-such"], ["signal", "none-such", "USR1"]):
                refused = run.command(*words)
                self.assertEqual(refused.returncode, 1)
                self.assertIn("no run none-such", refused.stderr)

    def test_a_run_that_ends_between_its_answer_and_the_order_is_not_called_silent(self):
        for words, code, text in (
            (["stop"], 0, "run gone has ended\n"),
            (["stop", "--no-wait"], 0, "run gone has ended\n"),
            (["stacks"], 1, "ddprun: error [CONTROL] run gone has ended in this moment\n"),
        ):
            with ending_run() as place:
                told = subprocess.run(
                    [DDPRUN, words[0], "gone", *words[1:]], capture_output=True, text=True,
                    timeout=60, env={**os.environ, "XDG_RUNTIME_DIR": place}, check=False)
            self.assertEqual((told.returncode, told.stdout + told.stderr), (code, text))


@contextlib.contextmanager
def ending_run():
    """Answers one status as run "gone", and ends like a run at the next request."""
    with tempfile.TemporaryDirectory(dir="/tmp") as place, socket.socket(socket.AF_UNIX) as server:
        os.mkdir(place + "/ddprun", 0o700)
        path = f"{place}/ddprun/{os.getpid()}-1.sock"
        about = {"ok": True, "run_id": "gone", "pid": 2**22 + 1, "coordinator": None}
        pathlib.Path(path).with_suffix(".run").write_text(json.dumps(about))
        server.bind(path)
        server.listen()

        def serve():
            with server.accept()[0] as client:
                client.recv(4096)
                client.sendall((json.dumps(about) + "\n").encode())
            with server.accept()[0] as client:
                client.recv(4096)
                os.unlink(path)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield place
        thread.join(60)


# A machine that runs four of this test at the same time.
LOADED = float(os.environ.get("DDPRUN_TEST_LOADED", "4"))

if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
