#!/usr/bin/env python3
"""Which log files a run leaves, and which of them its report names.

python3 tests/agent/log_files_test.py path/to/ddprun
"""

import os
import pathlib
import re
import sys
import tempfile
import unittest

import console_test
from console_test import HUNG, run, screen
from streams import read_until

start_on_terminal = console_test.Console.start_on_terminal
TIMED_OUT = ("RuntimeError: [x/gloo/transport/tcp/unbound_buffer.cc:81] Timed out waiting "
             "1800000ms for recv operation to complete")


class LogFiles(unittest.TestCase):
    def test_a_named_log_directory_has_all_streams_of_all_ranks(self):
        for on_terminal in (False, True):
            with tempfile.TemporaryDirectory() as logs:
                self.check_all_streams(pathlib.Path(logs), on_terminal)

    def check_all_streams(self, logs, on_terminal):
        script = (f"echo out $RANK; echo err $RANK >&2; echo > {logs}/said.$RANK; "
                  f"[ $RANK = 1 ] || exec sleep 30; until [ -e {logs}/said.0 ]; do :; done; exit 3")
        if on_terminal:
            leader, process = start_on_terminal(
                self, script, options=["--nproc-per-node=2", f"--log-dir={logs}"],
                environment={"NO_COLOR": "1"})
            seen = screen(read_until(leader, b"exit      code 3", HUNG))
            self.assertEqual(process.wait(timeout=HUNG), 3)
            report = b"\n".join(seen).decode()
        else:
            done = run(script, f"--log-dir={logs}", capture_output=True)
            self.assertEqual(sorted(done.stdout.split("\n")), ["", "out 0", "out 1"])
            report = done.stderr
        for rank in (0, 1):
            for name, text in (("stdout", "out"), ("stderr", "err")):
                (file,) = logs.glob(f"*/attempt_0/{rank}/{name}.log")
                self.assertEqual(file.read_text(), f"{text} {rank}\n")
        report = report[report.index("ddprun: error"):]
        self.assertIn("| err 1\n", report)
        row = re.search(r"^  log +(.*)$", report.replace("\n" + " " * 12, ""), re.MULTILINE)
        if not on_terminal:  # which folds a long path
            self.assertEqual(pathlib.Path(row[1]).read_text(), "err 1\n")

    def test_compat_and_named_streams_leave_the_files_of_torchrun(self):
        for options in (["--compat"], ["--redirects=1"]):
            with tempfile.TemporaryDirectory() as logs:
                run("echo out; echo err >&2", f"--log-dir={logs}", *options, capture_output=True)
                files = {file.name for file in pathlib.Path(logs).rglob("*.log")}
            self.assertEqual(files, {"stdout.log"} if "--redirects=1" in options else set())

    def test_a_report_names_no_log_that_does_not_have_what_it_quotes(self):
        silent = f"[ $RANK = 1 ] && exec sleep 30; echo '{TIMED_OUT}' >&2; exit 1"
        unlogged = "[ $RANK = 0 ] && exec sleep 30; echo mine >&2; exit 1"
        for script, code in ((silent, b"[W-COLLECTIVE]"), (unlogged, b"[W-EXIT]")):
            with tempfile.TemporaryDirectory() as folder:
                leader, process = start_on_terminal(
                    self, script, options=["--nproc-per-node=2"],
                    environment={"NO_COLOR": "1", "TMPDIR": folder})
                seen = read_until(leader, b"exit      code 1", HUNG)
                self.assertEqual(process.wait(timeout=HUNG), 1)
            report = seen[seen.index(b"ddprun: error"):]
            self.assertIn(code, report)
            self.assertNotIn(b"\n  log ", report)


if __name__ == "__main__":
    console_test.DDPRUN = os.path.abspath(sys.argv.pop(1))
    unittest.main(verbosity=1)
