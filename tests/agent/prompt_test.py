#!/usr/bin/env python3
"""Ranks that ask the user on a terminal whose stdout it does not show.

python3 tests/agent/prompt_test.py path/to/ddprun
"""

import os
import pathlib
import pty
import shlex
import socket
import subprocess
import sys
import unittest

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from streams import read_until  # noqa: E402

DDPRUN = ""
HUNG = 30  # seconds after which a test counts as hung


class Prompts(unittest.TestCase):
    def start(self, script):
        """Two ranks on a terminal of their own: what reads and types there, and the process."""
        leader, follower = pty.openpty()
        words = ["setsid", "--ctty", "--wait", DDPRUN, "--standalone", "--nproc-per-node=2",
                 "sh", "-c", script]
        process = subprocess.Popen(words, stdin=follower, stdout=follower, stderr=follower,
                                   env={**os.environ, "TERM": "xterm", "NO_COLOR": "1"})
        os.close(follower)
        self.addCleanup(os.close, leader)
        return leader, process

    def stop(self, leader, process):
        os.write(leader, b"\x03")
        seen = read_until(leader, b"exit 130", HUNG)
        self.assertEqual(process.wait(timeout=HUNG), 130)
        return seen

    def test_a_prompt_of_a_hidden_rank_is_shown_and_answered(self):
        host = socket.gethostname().split(".")[0].encode()
        asks = """import sys
def ask(prompt):
    print(prompt, end='', flush=True)
    return sys.stdin.readline().strip()
print('before'); print('got', ask('first? ')); print('then', ask('second? ')); ask('third? ')
"""
        leader, process = self.start(
            f'[ $RANK = 1 ] && exec {shlex.quote(sys.executable)} -c "{asks}"; exec sleep 1000')
        seen = read_until(leader, host + b":1| first? ", HUNG)
        if b"is shown meanwhile" not in seen:
            seen += read_until(leader, b"is shown meanwhile", HUNG)
        for answer, question in ((b"you", b":1| second? "), (b"me", b":1| third? ")):
            os.write(leader, answer + b"\n")
            seen += read_until(leader, question, HUNG)
        seen += self.stop(leader, process)
        self.assertIn(b"note [INPUT] rank 1 waits for input from the terminal; stdout of rank 1",
                      seen)
        self.assertIn(b"got you\r\n", seen)
        self.assertIn(b"then me\r\n", seen)
        self.assertNotIn(b"before", seen)
        self.assertEqual(seen.count(b"[INPUT]"), 1)

    def test_what_is_shown_of_stdout_does_not_continue_a_prompt_on_stderr(self):
        host = socket.gethostname().split(".")[0].encode()
        asks = """print('a question follows', flush=True); input('first? ')"""
        leader, process = self.start(
            f'[ $RANK = 1 ] && exec {shlex.quote(sys.executable)} -c "{asks}"; exec sleep 1000')
        seen = read_until(leader, b"is shown meanwhile", HUNG)
        seen += self.stop(leader, process)
        label = host + rb":1\| "
        self.assertRegex(seen, label + rb"first\? ?\r\n" + label + rb"a question follows\r\n")

    def test_ranks_that_share_the_keys_are_named(self):
        # Python takes a line at once; two shells would share its bytes.
        asks = """import signal, sys
print('got it', sys.stdin.readline().strip(), file=sys.stderr)
signal.pause()
"""
        leader, process = self.start(f'exec {shlex.quote(sys.executable)} -c "{asks}"')
        seen = read_until(leader, b"reads first", HUNG)
        self.assertIn(b"[INPUT] ranks 0, 1 wait for ", seen)
        os.write(leader, b"one\n")
        read_until(leader, b"got it one", HUNG)
        self.stop(leader, process)


if __name__ == "__main__":
    DDPRUN = os.path.abspath(sys.argv.pop(1))
    unittest.main(verbosity=1)
