#!/usr/bin/env python3
"""Nodes join a run whose ranks train over Gloo: each rank keeps its process, and no step is lost or
repeated that the ranks have finished. Ranks that finish their work as a node joins end the run. A
rank that has to be replaced in a round meets the others there. Real torch (2.15 or later).

python3 tests/survivors/grow_test.py path/to/ddprun path/to/ddprun-rdzvd path/to/build/python
"""
import contextlib
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import unittest

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from eventually import HUNG, eventually
from ports import free_port

DDPRUN, RDZVD, PYTHON_DIR = (os.path.abspath(path) for path in sys.argv[1:4])
STARTED = 4 * HUNG  # an interpreter that imports torch, on a machine that is busy
WORKER = str(pathlib.Path(__file__).resolve().parent / "growing.py")


class Growth(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.port = free_port()
        self.coordinator = self.spawn(RDZVD, f"--port={self.port}", "--state-file=off")

    def spawn(self, *words):
        errors = self.enterContext(tempfile.TemporaryFile("w+"))
        process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=errors, stderr=errors,
                                   env={**os.environ, "PYTHONPATH": PYTHON_DIR})
        process.errors = errors
        self.addCleanup(self.end, process)
        return process

    def end(self, process):
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        process.wait()

    def node(self):
        return self.spawn(DDPRUN, "--restart=failed", "--nnodes=1:3", "--nproc-per-node=1",
                          "--rdzv-backend=c10d", f"--rdzv-endpoint=127.0.0.1:{self.port}",
                          "--rdzv-id=growth", "--rdzv-conf=is_host=0,last_call_timeout=1",
                          "--no-python", sys.executable, WORKER, str(self.folder))

    def said(self, process):
        process.errors.seek(0)
        return process.errors.read()

    def steps(self):
        """Of each process its steps, in order: round, world size, step, cause."""
        found = {}
        for path in self.folder.glob("[0-9]*"):
            lines = [line.split() for line in path.read_text().splitlines()]
            found[path.name] = [(*map(int, line[:3]), line[3]) for line in lines]
        return found

    def runs(self, number):
        """All ranks of the world of `number` ranks have done three steps in it."""
        return sum(len([one for one in its if one[1] == number]) >= 3
                   for its in self.steps().values()) >= number

    def test_nodes_join_and_no_step_is_lost_or_repeated(self):
        nodes = []
        for number in (1, 2, 3):
            nodes.append(self.node())
            ended = lambda: any(node.poll() is not None for node in nodes)
            eventually(lambda size=number: self.runs(size) or ended(), STARTED)
            self.assertTrue(self.runs(number), "\n".join(map(self.said, nodes)))
        (self.folder / "done").touch()
        for node in nodes:
            self.assertEqual(node.wait(HUNG), 0, self.said(node))
            self.assertIn("0 restarts", self.said(node))
        all_steps = self.steps()
        self.assertEqual(len(all_steps), 3)  # one process for each rank
        for its in all_steps.values():
            numbers = [one[2] for one in its]
            self.assertEqual(numbers, sorted(set(numbers)))  # none twice
            causes = list(dict.fromkeys((one[0], one[3]) for one in its))
            self.assertEqual([cause for _, cause in causes],
                             ["start"] + ["failure"] * (len(causes) - 1))
        last = max(one[2] for its in all_steps.values() for one in its)
        done = {one[2] for its in all_steps.values() for one in its}
        self.assertEqual(done, set(range(1, last + 1)))

    def test_a_node_joins_in_the_last_step(self):
        nodes = []
        for number in (1, 2):
            nodes.append(self.node())
            ended = lambda: any(node.poll() is not None for node in nodes)
            eventually(lambda size=number: self.runs(size) or ended(), STARTED)
        self.assertTrue(self.runs(2), "\n".join(map(self.said, nodes)))
        (self.folder / "last").touch()
        nodes.append(self.node())
        for node in nodes:
            self.assertEqual(node.wait(STARTED), 0, "\n".join(map(self.said, nodes)))
            self.assertRegex(self.said(node),
                             "all 2 ranks on 2 nodes exited with code 0.*; 0 restarts")
        trained = [its for its in self.steps().values() if its]
        self.assertEqual(len(trained), 2)  # as many processes as ranks

    def test_ranks_wait_for_one_that_is_replaced_in_their_round(self):
        run = self.spawn(DDPRUN, "--restart=failed", "--nproc-per-node=3", "--max-restarts=1",
                         "--rejoin-timeout=2", "--no-python", sys.executable, WORKER,
                         str(self.folder))
        eventually(lambda: self.runs(3) or run.poll() is not None, STARTED)
        lost, stopped, kept = self.steps()
        os.kill(int(stopped), signal.SIGSTOP)
        os.kill(int(lost), signal.SIGKILL)
        in_second_round = lambda: sum(any(one[0] == 2 for one in its)
                                      for its in self.steps().values()) == 3
        eventually(lambda: in_second_round() or run.poll() is not None, STARTED)
        (self.folder / "done").touch()
        self.assertEqual(run.wait(HUNG), 0, self.said(run))
        self.assertIn("1 restart", self.said(run))
        self.assertIn("1 rank kept", self.said(run))
        self.assertEqual(len(self.steps()), 5)
        self.assertEqual(self.steps()[kept][-1][0], 2)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[4:])
