#!/usr/bin/env python3
"""A stop of one node's ddprun that ends the run leaves the ranks of all nodes time to save.

python3 tests/worker_api/stop_nodes_test.py path/to/ddprun path/to/ddprun-rdzvd path/to/build/python
"""

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
LONG = "600"  # seconds of grace that no test waits for
# A save in which all ranks take part, also those of nodes that got no signal.
SAVES = """
import ddprun, os, pathlib, sys
folder = pathlib.Path(sys.argv[1])
assert ddprun.handle_stop() is None and ddprun.connected()
(folder / f"up{os.environ['RANK']}").touch()
while not ddprun.stop_requested(): ddprun.wait_for_stop(1)
(folder / f"asked{os.environ['RANK']}").write_text(str(ddprun.stop_requested()))
while len(list(folder.glob("asked*"))) < int(os.environ["WORLD_SIZE"]): ddprun.wait_for_stop(0)
(folder / f"saved{os.environ['RANK']}").touch()
"""


class StopOfNodes(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.port = free_port()
        self.nodes = []

    def spawn(self, *words):
        errors = self.enterContext(tempfile.TemporaryFile("w+"))
        process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=errors, stderr=errors,
                                   env={**os.environ, "PYTHONPATH": PYTHON_DIR})
        process.errors = errors
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def said(self):
        for node in self.nodes:
            node.errors.seek(0)
        return "\n".join(node.errors.read() for node in self.nodes)

    def start(self, count, *options, hosts=0):
        for index in range(count):
            self.nodes.append(self.spawn(
                DDPRUN, f"--nnodes={count}", f"--rdzv-endpoint=127.0.0.1:{self.port}",
                "--rdzv-backend=c10d", f"--rdzv-conf=is_host={int(index == hosts)}",
                f"--node-rank={index}", "--nproc-per-node=2", "--log-dir=/dev/null",
                f"--shutdown-timeout={LONG}", *options, "--no-python", sys.executable, "-c", SAVES,
                str(self.folder)))
        self.wait_for("up", 2 * count)

    def files(self, name):
        return sorted(path.name for path in self.folder.glob(name + "*"))

    def wait_for(self, name, count):
        self.assertTrue(eventually(lambda: len(self.files(name)) == count), self.said())

    def assert_all_have_saved(self):
        codes = [node.wait(HUNG) for node in self.nodes]
        self.assertEqual(codes, [143] * len(codes), self.said())
        self.assertEqual(len(self.files("saved")), 2 * len(self.nodes), self.said())
        self.assertEqual({path.read_text() for path in self.folder.glob("asked*")}, {"15"})

    def test_two_nodes_and_the_one_without_the_coordinator_is_stopped(self):
        self.start(2)
        self.nodes[1].send_signal(signal.SIGTERM)
        self.assert_all_have_saved()

    def test_three_nodes_and_the_one_with_the_coordinator_is_stopped(self):
        self.start(3)
        self.nodes[0].send_signal(signal.SIGTERM)
        self.assert_all_have_saved()

    def test_ranks_that_survive_are_asked_like_all_others_by_a_command(self):
        self.spawn(RDZVD, f"--port={self.port}", "--state-file=off")
        self.start(3, "--restart=failed", "--max-restarts=1", hosts=None)
        subprocess.run([DDPRUN, "stop", str(self.nodes[2].pid)], check=True, timeout=HUNG,
                       stdout=subprocess.DEVNULL)
        self.assert_all_have_saved()


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[4:])
