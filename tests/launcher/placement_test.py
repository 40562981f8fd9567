#!/usr/bin/env python3
"""Workers get the devices of --gpus, as NVML lists them, and a terminal shows who has which.

tests/launcher/placement_test.py path/to/ddprun path/to/libfake_nvml.so
"""

import fcntl
import os
import pathlib
import pty
import re
import struct
import subprocess
import sys
import tempfile
import termios
import unittest

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from streams import read_until  # noqa: E402

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


def shown_on_a_terminal(*options, **more):
    """What is written to a terminal that is standard error."""
    ours, theirs = pty.openpty()
    with subprocess.Popen([DDPRUN, "--standalone", *options, "sh", "-c", ":"], stderr=theirs,
                          env=variables(**more)) as started:
        os.close(theirs)
        text = read_until(ours, b"done:", HUNG)
        started.wait(HUNG)
    os.close(ours)
    return text.decode().replace("\r\n", "\n")


class Placement(unittest.TestCase):
    def test_all_workers_see_the_chosen_devices(self):
        done = run("--gpus=1,0")
        self.assertEqual(done.returncode, 0, done.stderr)
        lines = sorted(line.rpartition(":")[0] for line in done.stdout.splitlines())
        self.assertEqual(lines, [":0:1,0", ":1:1,0"])

    def test_indices_count_what_the_environment_leaves_visible(self):
        done = run("--gpus=0", CUDA_VISIBLE_DEVICES="GPU-fake2,0")
        self.assertEqual(done.stdout, ":0:GPU-fake2:.\n", done.stderr)
        done = run("--gpus=1,0", "--nproc-per-node=1", CUDA_VISIBLE_DEVICES="GPU-fake2,0")
        self.assertEqual(done.stdout, ":0:GPU-fake0,GPU-fake2:.\n", done.stderr)
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


class Table(unittest.TestCase):
    def test_a_terminal_shows_where_each_rank_is(self):
        with tempfile.TemporaryDirectory() as logs:
            text = shown_on_a_terminal("--gpus=GPU-fake2,GPU-fake0", "-r3", f"--log-dir={logs}")
        lines = text.splitlines()
        heading = next(at for at, line in enumerate(lines) if line.startswith("rank "))
        self.assertRegex(lines[heading], r"^rank +host +device +threads +log$")
        for rank, gpu in ((0, 2), (1, 0)):
            row = lines[heading + 1 + rank].split()
            self.assertEqual(row[:3], [str(rank), os.uname().nodename, f"GPU-fake{gpu}"])
            self.assertRegex(row[3], r"^\d+$")
            self.assertTrue(row[4].endswith(f"/attempt_0/{rank}/stderr.log"), row)
        self.assertIn(" run ", lines[0])

    def test_ranks_that_have_the_same_share_a_line(self):
        text = shown_on_a_terminal("--nproc-per-node=3")
        self.assertRegex(text, r"\nrank +host +threads\n0-2 +\S+ +\d+\n")

    def test_one_rank_and_a_pipe_get_no_table(self):
        self.assertIsNone(re.search("^rank ", shown_on_a_terminal("--gpus=0"), re.MULTILINE))
        self.assertNotIn("rank ", run("--gpus=1,0").stderr)

    def test_a_terminal_says_that_gpu_memory_is_waited_for(self):
        with tempfile.TemporaryDirectory() as folder:
            holders = os.path.join(folder, "holders")
            fails_once = (f'[ $TORCHELASTIC_RESTART_COUNT = 1 ] || {{ '
                          f'echo "0 $$$$ 1000 1000000" >{holders}; exit 3; }}')
            ours, theirs = pty.openpty()
            fcntl.ioctl(ours, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
            with subprocess.Popen(
                    [DDPRUN, "--standalone", "--max-restarts=1", "sh", "-c", fails_once],
                    stderr=theirs, env=variables(TERM="xterm", FAKE_NVML_HOLDERS=holders)) as run:
                os.close(theirs)
                read_until(ours, b"\r\x1b[Kwaiting for GPU memory to be freed, 2 s of 10 s", HUNG)
                os.truncate(holders, 0)
                after = read_until(ours, b"exited with code 0", HUNG)
            os.close(ours)
        self.assertEqual(run.returncode, 0)
        self.assertTrue(after.startswith(b"\r\x1b["), after)


if __name__ == "__main__":
    DDPRUN, FAKE_NVML = map(os.path.abspath, sys.argv[1:3])
    del sys.argv[1:3]
    unittest.main()
