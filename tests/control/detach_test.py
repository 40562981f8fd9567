#!/usr/bin/env python3
"""ddprun --detach and ddprun attach.

python3 tests/control/detach_test.py path/to/ddprun
"""

import contextlib
import os
import pathlib
import pty
import re
import signal
import subprocess
import sys
import tempfile
import unittest

from runs import DDPRUN, HUNG, WAITS, Run, eventually, standalone

# Writes lines until it is stopped.
FLOOD = "i=0; while :; do i=$((i+1)); echo line-$i-of-output; done"


def end(pid):
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


class Detached(Run):
    """A run that `ddprun --detach` has started; `process` is the one of the command."""

    def __init__(self, test, *words, ask="--detach", **options):
        super().__init__(ask, "--standalone", *words, **options)
        self.pid = 0
        test.addCleanup(self.__exit__)
        test.addCleanup(self.kill)

    def wait_for_return(self):
        out, self.told = self.process.communicate(timeout=HUNG)
        found = re.search(r"in the background \(pid (\d+)\), with its output in (.*)", self.told)
        if found:
            self.pid, self.file = int(found[1]), pathlib.Path(found[2])
        return self.process.returncode

    def alive(self):
        return self.pid and os.path.exists(f"/proc/{self.pid}")

    def kill(self):
        if self.pid:
            end(self.pid)


class Detach(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enter(tempfile.TemporaryDirectory(dir="/tmp")))

    def enter(self, context):
        entered = context.__enter__()
        self.addCleanup(context.__exit__, None, None, None)
        return entered

    def detached(self, *words, **options):
        return Detached(self, *words, cwd=self.folder, **options)

    def test_the_command_returns_once_the_workers_run_and_the_run_continues(self):
        run = self.detached("--nproc-per-node=2", "sh", "-c", WAITS)
        self.assertEqual(run.wait_for_return(), 0, run.told)
        self.assertEqual(list(self.folder.glob("*.out")), [run.file])
        self.assertEqual(run.file, self.folder / f"ddprun-{run.pid}.out")
        (line,) = [one for one in run.command("ps").stdout.splitlines() if f" {run.pid} " in one]
        self.assertIn(" running ", line)
        self.assertNotEqual(os.getsid(run.pid), os.getsid(0))
        self.assertEqual(run.command("stop", str(run.pid)).returncode, 0)
        self.assertTrue(eventually(lambda: not run.alive()))
        self.assertEqual(run.file.read_text().count("up\n"), 2)

    def test_with_quiet_the_command_says_nothing(self):
        run = self.detached("--quiet", "sh", "-c", WAITS)
        self.assertEqual(run.wait_for_return(), 0, run.told)
        (file,) = self.folder.glob("ddprun-*.out")
        run.pid = int(re.sub(r"\D", "", file.name))
        self.assertEqual(run.told, "")
        self.assertTrue(run.alive())

    def test_a_file_of_options_may_ask_for_it(self):
        file = self.folder / "run.toml"
        file.write_text("detach = true\n")
        run = self.detached("sh", "-c", WAITS, ask=f"--config={file}")
        self.assertEqual(run.wait_for_return(), 0, run.told)
        self.assertTrue(run.alive())
        self.assertEqual(run.command("stop", str(run.pid)).returncode, 0)

    def test_a_run_that_fails_before_its_workers_run_has_its_code_and_its_words(self):
        run = self.detached("/no/such/program")
        self.assertEqual(run.wait_for_return(), 127)
        self.assertIn("/no/such/program", run.told)
        (file,) = self.folder.glob("*.out")
        self.assertIn(str(file), run.told)

    def test_invalid_options_are_refused_by_the_command_itself(self):
        run = self.detached("--nproc-per-node=none", "true")
        self.assertEqual(run.wait_for_return(), 2)
        self.assertIn("--nproc-per-node", run.told)
        self.assertEqual(list(self.folder.glob("*.out")), [])
        self.assertNotIn(".out", run.told)

    def test_the_output_of_a_run_is_written_over_nothing(self):
        # The same pids come again.
        container = ["unshare", *([] if os.geteuid() == 0 else ["--user", "--map-root-user"]),
                     "--pid", "--fork", "--mount-proc", "--kill-child"]
        if subprocess.run([*container, "true"], capture_output=True, check=False).returncode:
            self.skipTest("no PID namespace for this user")
        for number in (1, 2):
            line = (f"'{DDPRUN}' --detach --standalone sh -c 'echo run {number}'; "
                    f"until [ $(cat *.out | grep -c done:) = {number} ]; do sleep 0.01; done; "
                    "cat *.out")
            shown = subprocess.run([*container, "sh", "-c", line], cwd=self.folder, text=True,
                                   capture_output=True, timeout=HUNG, check=False).stdout
            for one in range(1, number + 1):
                self.assertIn(f"run {one}\n", shown)

    def test_the_run_survives_the_end_of_its_terminal(self):
        keeper, terminal = pty.openpty()
        run = subprocess.Popen(
            [DDPRUN, "--detach", "--standalone", "sh", "-c", WAITS], cwd=self.folder,
            stdin=terminal, stdout=terminal, stderr=subprocess.PIPE, text=True,
            start_new_session=True,
        )
        os.close(terminal)
        told = run.communicate(timeout=HUNG)[1]
        pid = int(re.search(r"\(pid (\d+)\)", told)[1])
        self.addCleanup(end, pid)
        os.close(keeper)  # the terminal hangs up
        stopped = subprocess.run([DDPRUN, "stop", str(pid)], capture_output=True, text=True,
                                 timeout=HUNG, check=False)
        self.assertEqual(stopped.returncode, 0, stopped.stderr)
        self.assertIn("SIGTERM", next(self.folder.glob("*.out")).read_text())


class Attach(unittest.TestCase):
    setUp, enter, detached = Detach.setUp, Detach.enter, Detach.detached

    def attach(self, run, **options):
        attached = subprocess.Popen(
            [DDPRUN, "attach", str(run.pid)], env=run.environment, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)
        self.addCleanup(attached.communicate)
        self.addCleanup(attached.kill)
        self.assertIn("[ATTACH]", attached.stderr.readline())
        return attached

    def test_attach_does_not_show_the_file_that_it_writes_to(self):
        run = self.detached("sh", "-c", "echo before; read line < fifo")
        os.mkfifo(self.folder / "fifo")
        self.assertEqual(run.wait_for_return(), 0, run.told)
        output = os.readlink(f"/proc/{run.pid}/fd/1")
        with open(output, "a", encoding="utf-8") as same:
            done = subprocess.run([DDPRUN, "attach", str(run.pid)], env=run.environment, text=True,
                                  stdout=same, stderr=subprocess.PIPE, timeout=HUNG, check=False)
        self.assertEqual(done.returncode, 1)
        (self.folder / "fifo").write_text("x\n")
        self.assertIn("which would show itself", done.stderr)

    def test_attach_shows_what_was_written_and_what_comes_until_the_run_ends(self):
        run = self.detached("sh", "-c", "echo before; read line < fifo; echo after")
        os.mkfifo(self.folder / "fifo")
        self.assertEqual(run.wait_for_return(), 0, run.told)
        several = [self.attach(run) for _ in range(3)]
        for attached in several:
            while attached.stdout.readline() != "before\n":
                pass
        (self.folder / "fifo").write_text("x\n")
        for attached in several:
            out, _ = attached.communicate(timeout=HUNG)
            self.assertIn("after\n", out)
            self.assertIn("ddprun: done", out)
            self.assertEqual(attached.returncode, 0)

    def test_ctrl_c_only_detaches(self):
        run = self.detached("sh", "-c", WAITS)
        self.assertEqual(run.wait_for_return(), 0, run.told)
        attached = self.attach(run)
        attached.send_signal(signal.SIGINT)
        attached.communicate(timeout=HUNG)
        self.assertEqual(attached.returncode, -signal.SIGINT)
        self.assertTrue(run.alive())
        self.assertIn(" running ", run.command("ps").stdout)

    def test_one_that_does_not_read_does_not_slow_the_run(self):
        run = self.detached("sh", "-c", FLOOD)
        self.assertEqual(run.wait_for_return(), 0, run.told)
        self.attach(run)  # nothing more is read from it
        size = run.file.stat().st_size
        self.assertTrue(eventually(lambda: run.file.stat().st_size > size + 1_000_000))

    def test_a_run_on_a_pipe_cannot_be_attached_and_the_reason_is_said(self):
        with standalone("sh", "-c", WAITS) as run:
            run.wait_until_up()
            refused = run.command("attach", str(run.process.pid))
            self.assertEqual(refused.returncode, 1)
            self.assertIn("writes to a terminal or a pipe", refused.stderr)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
