#!/usr/bin/env python3
"""Runs the programs of examples/ under ddprun, and those in Python under the real torchrun, too.

examples_test.py DDPRUN WithoutTorch
examples_test.py DDPRUN WithTorch FOLDER     FOLDER keeps the pictures, if CIFAR10_SOURCE has some
examples_test.py DDPRUN WithAccelerate
"""

import importlib.util
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
HUNG = 240  # seconds after which a program counts as hung
DDPRUN = os.path.abspath(sys.argv[1])
LAUNCHERS = {"torchrun": [sys.executable, "-m", "torch.distributed.run"], "ddprun": [DDPRUN]}


def run(launcher, ranks, *words, code=0):
    """The lines that the workers print, sorted; and what is left on stderr. By way of files: the
    Python of both launchers is unbuffered, so that the lines of two ranks in a pipe mix."""
    with tempfile.TemporaryDirectory() as logs:
        done = subprocess.run(
            [*launcher, "--standalone", f"--nproc-per-node={ranks}", "--redirects=1",
             f"--log-dir={logs}", *map(str, words)],
            env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHON_EXEC": sys.executable},
            capture_output=True, text=True, timeout=HUNG, check=False)
        files = pathlib.Path(logs).rglob("stdout.log")
        lines = sorted(line for path in files for line in path.read_text().splitlines())
    assert done.returncode == code, (words, done.returncode, lines, done.stderr)
    return lines, done.stderr


def real_pictures():
    """The option that names some, if there are any."""
    if not os.path.exists(os.path.join(os.environ.get("CIFAR10_SOURCE", ""), "unpack.py")):
        return []
    folder = sys.argv[3]
    path = os.pathsep.join([os.path.dirname(sys.executable), os.environ["PATH"]])
    subprocess.run([ROOT / "scripts/get-cifar10", folder, "--per-class=200"], check=True,
                   env={**os.environ, "PATH": path}, timeout=HUNG)
    return [f"--data={folder}"]


class WithoutTorch(unittest.TestCase):
    def test_a_shell_script_splits_its_work_by_rank(self):
        printed, _ = run([DDPRUN], 4, EXAMPLES / "shell/sum.sh", 1000)
        sums = [int(re.fullmatch(rf"rank {rank} of 4: sum (\d+)", line)[1])
                for rank, line in enumerate(printed)]
        self.assertEqual((len(sums), sum(sums)), (4, 500500))

    def test_a_shell_script_counts(self):
        printed, _ = run([DDPRUN], 2, EXAMPLES / "shell/count.sh", 1)
        for rank, line in enumerate(printed):
            self.assertRegex(line, rf"^rank {rank} of 2, restart 0, pid \d+: step 0$")

    def test_a_worker_that_fails_once_is_quoted_and_restarted(self):
        printed, errors = run([DDPRUN], 2, "--max-restarts=1", EXAMPLES / "restart/fail_once.py")
        self.assertLessEqual({"rank 0: attempt 2", "rank 1: attempt 2"}, set(printed))
        self.assertIn("ValueError: the first attempt always fails", errors)
        self.assertIn("all 2 ranks exited with code 0", errors)

    def test_each_folder_says_what_it_shows_and_how_it_is_run(self):
        table = (ROOT / "README.md").read_text()
        folders = sorted(path for path in EXAMPLES.iterdir() if path.is_dir())
        self.assertGreaterEqual(len(folders), 10)
        for folder in folders:
            self.assertIn("ddprun ", (folder / "README.md").read_text(), folder)
            self.assertIn(f"](examples/{folder.name})", table)


class WithTorch(unittest.TestCase):
    """Each program under each launcher: both print the same."""

    def both(self, ranks, *words):
        theirs, ours = (run(launcher, ranks, *words)[0] for launcher in LAUNCHERS.values())
        self.assertEqual(theirs, ours)
        return ours

    def test_a_ring_of_ranks_passes_messages(self):
        self.assertEqual(self.both(3, EXAMPLES / "ring/ring.py"),
                         [f"rank {rank} of 3: sum 30 33 36 39" for rank in range(3)] + ["token: 3"])

    def test_a_recorded_error_is_in_the_report(self):
        for name, launcher in LAUNCHERS.items():
            _, errors = run(launcher, 2, "--redirects=3", EXAMPLES / "record/record.py", code=1)
            self.assertIn("ValueError: rank 1: batch 17 has no labels", errors, name)
            self.assertIn("in read_batch", errors, name)

    def test_the_recipe_learns(self):
        data = real_pictures()
        lines = {}
        for name, launcher in LAUNCHERS.items():
            with tempfile.TemporaryDirectory() as folder:
                lines[name] = [
                    line for command in ("train", "test")
                    for line in run(launcher, 2, EXAMPLES / "cifar/cifar.py", command,
                                    f"--model={folder}/cifar.pt", *data, "--batch=20")[0]]
        self.assertEqual(lines["torchrun"], lines["ddprun"])
        *epochs, wrote, accuracy = lines["ddprun"]
        self.assertEqual(wrote, "wrote cifar.pt")
        losses = [float(line.split()[-1]) for line in epochs]
        self.assertEqual(losses, sorted(losses, reverse=True))
        print("trained on", "real" if data else "synthetic", "pictures:", accuracy)
        self.assertGreater(float(re.fullmatch(r"accuracy ([\d.]+) %", accuracy)[1]), 20)

    def test_the_script_of_a_lab_resumes(self):
        program = EXAMPLES / "resnet/resnet_ddp.py"
        with tempfile.TemporaryDirectory() as folder:
            whole, _ = run(LAUNCHERS["torchrun"], 2, program, f"--model_dir={folder}",
                           "--num_epochs=3", "--resume")
        self.assertEqual([line.split(":")[0] for line in whole], ["epoch 0", "epoch 1", "epoch 2"])
        with tempfile.TemporaryDirectory() as folder:
            program_here = [program, f"--model_dir={folder}/models", "--resume"]
            begun, _ = run([DDPRUN], 2, *program_here, "--num_epochs=2")
            resumed, _ = run([DDPRUN], 2, *program_here, "--num_epochs=3")
        self.assertEqual(begun + resumed, [*whole, "resumed at epoch 2"])


class WithAccelerate(unittest.TestCase):
    def test_the_program_trains_on_the_ranks_of_the_launcher(self):
        theirs, ours = (run(launcher, 2, EXAMPLES / "accelerate/classify.py")[0]
                        for launcher in LAUNCHERS.values())
        self.assertEqual(theirs, ours)
        losses = [float(re.fullmatch(r"epoch \d: loss ([\d.]+) on 2 ranks", line)[1])
                  for line in ours]
        self.assertEqual(len(losses), 5)
        self.assertLess(losses[-1], losses[0])


if __name__ == "__main__":
    if sys.argv[2] == "WithAccelerate" and not importlib.util.find_spec("accelerate"):
        print("skipped: no accelerate: run scripts/setup --torch or --torch-next")
        sys.exit(77)
    unittest.main(argv=sys.argv[:1] + sys.argv[2:3], verbosity=2)
