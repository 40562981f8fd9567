#!/usr/bin/env python3
"""Kernels and sandboxes that refuse system calls, /proc or every folder: ddprun continues by an
older way, or one sentence says what is missing.

    tests/front/denied_test.py path/to/ddprun
"""

import ctypes
import errno
import os
import platform
import struct
import subprocess
import sys
import time
import unittest

from processes_of_run import Run
from sentences import kWithoutLogFiles

DDPRUN = ""
NUMBERS = {
    "x86_64": {"getrandom": 318, "signalfd4": 289},
    "aarch64": {"getrandom": 278, "signalfd4": 74},
}.get(platform.machine())
ALIKE = {"pidfd_send_signal": 424, "pidfd_open": 434, "clone3": 435}
LOAD_NUMBER, IF_EQUAL, RETURN, REFUSE, ALLOW = 0x20, 0x15, 0x06, 0x00050000, 0x7FFF0000
PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, FILTER_MODE = 38, 22, 2
libc = ctypes.CDLL(None, use_errno=True)


class Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("code", ctypes.c_void_p)]


def refusing(calls, error):
    """For a child process: these system calls fail."""
    code = struct.pack("HBBI", LOAD_NUMBER, 0, 0, 0)
    for call in calls:
        code += struct.pack("HBBI", IF_EQUAL, 0, 1, {**NUMBERS, **ALIKE}[call])
        code += struct.pack("HBBI", RETURN, 0, 0, REFUSE | error)
    code += struct.pack("HBBI", RETURN, 0, 0, ALLOW)
    text = ctypes.create_string_buffer(code)
    program = Program(len(code) // 8, ctypes.cast(text, ctypes.c_void_p))

    def install():
        libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
        if libc.prctl(PR_SET_SECCOMP, FILTER_MODE, ctypes.byref(program), 0, 0) != 0:
            raise OSError(ctypes.get_errno(), "seccomp")
    return install


def in_mounts(commands):
    """The launcher in a mount namespace in which these commands have run."""
    return ["unshare", "--mount", "sh", "-ec", commands + "\nexec \"$@\"", "sh", DDPRUN]


def read_only(*folders):
    return "\n".join(f"mount --bind {folder} {folder}; mount -o remount,bind,ro {folder}"
                     for folder in folders)


@unittest.skipUnless(NUMBERS, f"no numbers of system calls of {platform.machine()} here")
class RefusedCalls(unittest.TestCase):
    def run_without(self, calls, error, script, options=()):
        return Run(DDPRUN, script, ["--shutdown-timeout=20", *options],
                   preexec_fn=refusing(calls, error))

    def test_without_pidfds_ranks_run_restart_and_leave_nothing(self):
        script = "if [ $DDPRUN_ROUND = 2 ]; then exit 0; fi; (setsid sleep 1000 &); exit 3"
        for error in (errno.ENOSYS, errno.EPERM):
            calls = ["clone3", "pidfd_open", "pidfd_send_signal"]
            with self.subTest(error=error), \
                 self.run_without(calls, error, script, ["--max-restarts=1"]) as run:
                self.assertEqual(run.end(), 0, run.text())
                self.assertNotIn("left behind by the run", run.text())
                run.check_nothing_left()

    def test_a_refused_signal_by_pidfd_does_not_cost_the_shutdown_timeout(self):
        script = "(setsid sleep 1000 &); sleep 0.1; exit 3"
        began = time.monotonic()
        with self.run_without(["pidfd_send_signal"], errno.EPERM, script) as run:
            self.assertEqual(run.end(), 3, run.text())
            self.assertLess(time.monotonic() - began, 15)
            run.check_nothing_left()

    def test_without_getrandom_a_run_has_an_id_all_the_same(self):
        with self.run_without(["getrandom"], errno.EPERM, "exit 0") as run:
            self.assertEqual(run.end(), 0, run.text())
            self.assertRegex(run.text(), r"run [0-9a-f]{8}-[0-9a-f]{4}-4")

    def test_without_signalfd_one_sentence_names_it(self):
        with self.run_without(["signalfd4"], errno.EPERM, "exit 0") as run:
            self.assertEqual(run.end(), 1)
            self.assertIn("error [START] the kernel or a sandbox refuses a system call that ddprun "
                          "needs: signalfd: Operation not permitted", run.text())


@unittest.skipUnless(os.geteuid() == 0, "only root can mount")
class RefusedFolders(unittest.TestCase):
    def test_without_proc_one_sentence_says_what_may_be_left(self):
        launcher = in_mounts("mount -t tmpfs none /proc")
        with Run(launcher, "sleep 1000 & exit 3") as run:
            self.assertEqual(run.end(), 3, run.text())
            self.assertIn("warning [PROC] /proc cannot be read", run.text())
            run.check_nothing_left()  # of the worker's process group

    def test_without_a_folder_to_write_to_a_run_that_asks_for_no_file_has_none(self):
        launcher = in_mounts(read_only("/tmp", "/var/tmp", "/dev/shm"))
        environment = {key: value for key, value in os.environ.items() if key != "TMPDIR"}
        arguments = ["--nproc-per-node=2", "--no-python", "sh", "-c", "echo rank $RANK runs"]
        ended = subprocess.run([*launcher, *arguments], capture_output=True, text=True,
                               timeout=60, env=environment)
        self.assertEqual(ended.returncode, 0, ended.stderr)
        self.assertIn("rank 0 runs", ended.stdout)
        self.assertIn(kWithoutLogFiles, ended.stderr)
        asked = subprocess.run([*launcher, "--log-dir=/tmp/ddprun-denied", *arguments],
                               capture_output=True, text=True, timeout=60, env=environment)
        self.assertNotEqual(asked.returncode, 0)
        self.assertIn("Read-only file system", asked.stderr)

    def test_a_shared_memory_folder_that_is_read_only_now_is_passed_over(self):
        os.makedirs(f"/dev/shm/ddprun-{os.geteuid()}", mode=0o700, exist_ok=True)
        launcher = in_mounts(read_only("/dev/shm") + "\nmount -t tmpfs none /tmp")
        with Run(launcher, "exit 0") as run:
            self.assertEqual(run.end(), 0, run.text())
            self.assertNotIn("[LINK]", run.text())


if __name__ == "__main__":
    DDPRUN = os.path.abspath(sys.argv.pop(1))
    unittest.main(verbosity=2)
