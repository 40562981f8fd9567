#!/usr/bin/env python3
"""Workers get the devices of --gpus, as NVML lists them.

tests/launcher/placement_test.py path/to/ddprun path/to/libfake_nvml.so
"""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

DDPRUN = ""
HUNG = 30  # seconds after which a test counts as hung
SHOW = 'echo "$DDPRUN_LOCAL_RANK:$LOCAL_RANK:$CUDA_VISIBLE_DEVICES:$OMP_NUM_THREADS."'
HIDES = ("CUDA_VISIBLE_DEVICES", "OMP_NUM_THREADS", "HIP_VISIBLE_DEVICES", "DDPRUN_COMPAT")


def variables(**more):
    """Two GPUs, of which the second has no MIG unless `more` says so."""
    kept = {name: value for name, value in os.environ.items() if name not in HIDES}
    return {**kept, "DDPRUN_NVML": FAKE_NVML, "FAKE_NVML_MIG": "0", **more}


def run(*options, **more):
    return subprocess.run([DDPRUN, "--standalone", *options, "sh", "-c", SHOW], text=True,
                          env=variables(**more), timeout=HUNG, capture_output=True, check=False)


class Placement(unittest.TestCase):
    def test_all_workers_see_the_chosen_devices(self):
        done = run("--gpus=1,0")
        self.assertEqual(done.returncode, 0, done.stderr)
        lines = sorted(line.rpartition(":")[0] for line in done.stdout.splitlines())
        self.assertEqual(lines, [":0:1,0", ":1:1,0"])

    def test_indices_count_what_the_environment_leaves_visible(self):
        done = run("--gpus=0", CUDA_VISIBLE_DEVICES="GPU-fake2,0")
        self.assertEqual(done.stdout, ":0:GPU-fake2:.\n", done.stderr)
        done = run("--gpus=1", CUDA_VISIBLE_DEVICES="1")
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn("(CUDA_VISIBLE_DEVICES=1): 0 (GPU-fake2)\n", done.stderr)

    def test_each_worker_sees_one_mig_instance(self):
        done = run("--gpus=all", FAKE_NVML_ONLY_MIG="1", FAKE_NVML_MIG="3")
        self.assertEqual(done.returncode, 0, done.stderr)
        lines = sorted(line.rpartition(":")[0] for line in done.stdout.splitlines())
        self.assertEqual(lines, ["0:0:MIG-fake0", "1:0:MIG-fake1", "2:0:MIG-fake2"])

    def test_a_link_called_torchrun_has_the_threads_of_torchrun(self):
        with tempfile.TemporaryDirectory() as folder:
            link = pathlib.Path(folder, "torchrun")
            link.symlink_to(DDPRUN)
            for program, variable in ((link, {}), (DDPRUN, {"DDPRUN_COMPAT": "1"})):
                done = subprocess.run(
                    [program, "--standalone", "--nproc-per-node=2", "--no-python", "sh", "-c",
                     SHOW], text=True, env=variables(**variable), timeout=HUNG,
                    capture_output=True, check=False)
                self.assertEqual(sorted(done.stdout.splitlines()), [":0::1.", ":1::1."])


if __name__ == "__main__":
    DDPRUN, FAKE_NVML = map(os.path.abspath, sys.argv[1:3])
    del sys.argv[1:3]
    unittest.main()
