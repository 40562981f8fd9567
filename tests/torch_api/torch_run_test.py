#!/usr/bin/env python3
"""torch.distributed.run by ddprun, which DDPRUN_TORCH=1 and ddprun.pth bring: torchrun, accelerate
and Lightning Fabric as they come from PyPI, and programs that call run() themselves.

python tests/torch_api/torch_run_test.py path/to/ddprun path/to/build/python
"""

import importlib.util
import os
import subprocess
import sys
import tempfile
import unittest

DDPRUN = os.path.abspath(sys.argv[1]) if len(sys.argv) > 1 else ""
PYTHON_DIR = os.path.abspath(sys.argv[2]) if len(sys.argv) > 2 else ""
HUNG = 280
RANK = """
import os, sys
os.write(1, f"rank {os.environ['RANK']} {sys.argv[1:]} {'DDPRUN_ROUND' in os.environ}\\n".encode())
if "fail" in sys.argv and os.environ["RANK"] == "1": raise ValueError("one of the data")
"""
CALLS = """
import sys, torch.distributed.run as run
from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
args = run.parse_args(["--nproc-per-node=2", "--max-restarts=1", sys.argv[1], *sys.argv[2:]])
try: run.run(args)
except ChildFailedError as error:
    rank, failure = error.get_first_failure()
    print("first", rank, failure.local_rank, failure.exitcode, failure.pid > 0, failure.message)
print("here", sys.argv[2:])
"""
# As `tune run` of torchtune: a parser of its own with torch's actions, two of them renamed.
TUNE = """
import argparse, torch.distributed.run as run
parser = argparse.ArgumentParser()
for action in run.get_args_parser()._actions:
    if action.dest == "training_script": action.dest = "recipe"
    elif action.dest == "training_script_args": action.dest = "recipe_args"
    if action.dest != "help": parser._add_action(action)
args = parser.parse_args()
args.training_script, args.training_script_args = args.recipe, args.recipe_args
args.standalone = args.module = True
args.func = print
run.run(args)
"""
FABRIC = """
import os
from lightning_fabric import Fabric
fabric = Fabric()
os.write(1, f"rank {fabric.global_rank} [] {'DDPRUN_ROUND' in os.environ}\\n".encode())
"""


class TorchRun(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        # As site-packages: its .pth files count.
        self.write("sitecustomize.py", f"import site\nsite.addsitedir({PYTHON_DIR!r})\n")

    def write(self, name, text):
        path = os.path.join(self.folder, name)
        with open(path, "w") as file:
            file.write(text)
        return path

    def call(self, *words, code=0, asked="1"):
        paths = os.pathsep.join(filter(None, (self.folder, os.environ.get("PYTHONPATH"))))
        environment = {**os.environ, "DDPRUN_TORCH": asked, "PYTHONPATH": paths,
                       "PATH": os.path.dirname(DDPRUN) + os.pathsep + os.environ["PATH"]}
        for name in [name for name in environment if name.startswith("PET_")]:
            del environment[name]
        done = subprocess.run([sys.executable, *words], env=environment, text=True,
                              capture_output=True, timeout=HUNG, check=False)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done

    def check_ranks(self, out, arguments, by_ddprun=True):
        self.assertEqual(sorted(line for line in out.splitlines() if line.startswith("rank")),
                         [f"rank {rank} {arguments} {by_ddprun}" for rank in range(2)])

    def test_python_m_and_its_exit_code(self):
        path = self.write("rank.py", RANK)
        words = ("-m", "torch.distributed.run", "--nproc-per-node=2", path)
        self.check_ranks(self.call(*words, "a", "--b").stdout, ["a", "--b"])
        failed = self.call(*words, "fail", code=1)
        self.assertIn("torchrun: error [W-EXIT] rank 1", failed.stderr)

    def test_without_being_asked_torchrun_is_torchs(self):
        path = self.write("rank.py", RANK)
        done = self.call("-m", "torch.distributed.run", "--nproc-per-node=2", path, asked="0")
        self.check_ranks(done.stdout, [], by_ddprun=False)

    def test_run_of_a_namespace_and_the_first_failure(self):
        path, program = self.write("rank.py", RANK), self.write("calls.py", CALLS)
        self.check_ranks(self.call(program, path, "x y").stdout, ["x y"])
        out = self.call(program, path, "fail").stdout
        self.assertIn("first 1 1 1 True ", out)
        self.assertIn("ValueError: one of the data", out)
        self.assertIn("here ['fail']", out)

    def test_a_namespace_of_another_parser(self):
        self.write("rank.py", RANK)
        program = self.write("tune.py", TUNE)
        done = self.call(program, "--nproc_per_node", "2", "rank", "--config", "tiny")
        self.check_ranks(done.stdout, ["--config", "tiny"])

    def test_accelerate(self):
        if importlib.util.find_spec("accelerate") is None:
            self.skipTest("no accelerate")
        path = self.write("rank.py", RANK)
        words = ("-m", "accelerate.commands.accelerate_cli", "launch", "--multi_gpu",
                 "--num_processes=2", "--mixed_precision=no", "--num_machines=1",
                 "--dynamo_backend=no", "--main_process_port=0", path)
        self.check_ranks(self.call(*words, "--x", "1").stdout, ["--x", "1"])
        failed = self.call(*words, "fail", code=1)
        self.assertIn("ChildFailedError", failed.stderr)
        self.assertIn("rank      : 1 (local_rank: 1)", failed.stderr)

    def test_lightning_fabric(self):
        if importlib.util.find_spec("lightning_fabric") is None:
            self.skipTest("no lightning-fabric")
        path = self.write("fabric_rank.py", FABRIC)
        done = self.call("-m", "lightning_fabric.cli", "--accelerator=cpu", "--strategy=ddp",
                         "--devices=2", path)
        self.check_ranks(done.stdout, [])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
