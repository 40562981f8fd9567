#!/usr/bin/env python3
"""ddprun.launch(): functions on several ranks, their results and their exceptions.

python3 tests/torch_api/launch_test.py path/to/ddprun path/to/build/python
"""

import os
import signal
import subprocess
import sys
import tempfile
import unittest

DDPRUN = os.path.abspath(sys.argv[1]) if len(sys.argv) > 1 else ""
PYTHON_DIR = os.path.abspath(sys.argv[2]) if len(sys.argv) > 2 else ""
HUNG = 120
FUNCTIONS = """
import os, signal, sys
import ddprun
class Unread(Exception):
    def __init__(self, one, two): super().__init__(one)
def times(factor, plus=0): return int(os.environ["RANK"]) * factor + plus
def raises(rank):
    if os.environ["RANK"] == str(rank): raise KeyError("epoch", rank)
    signal.pause()
def once(folder):
    if os.environ["RANK"] == "0" and os.environ["TORCHELASTIC_RESTART_COUNT"] == "0": raise OSError
    return os.environ["TORCHELASTIC_RESTART_COUNT"]
def dies(): os.kill(os.getpid(), signal.SIGKILL) if os.environ["RANK"] == "1" else signal.pause()
def unread(): raise Unread(1, 2)
"""


class Launch(unittest.TestCase):
    """With cloudpickle, where it is installed."""

    without = ""  # this module

    def run_main(self, *lines, fails=False):
        """Of a file, whose functions only pickle can name where cloudpickle is missing."""
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "program.py")
            with open(path, "w") as file:
                body = "".join(f"    {line}\n" for line in lines)
                file.write(FUNCTIONS + "if __name__ == '__main__':\n" + body)
            if self.without:
                with open(os.path.join(folder, f"{self.without}.py"), "w") as file:
                    file.write("raise ImportError\n")
            temporary = os.path.join(folder, "tmp")
            os.mkdir(temporary)
            environment = {**os.environ, "PYTHONPATH": PYTHON_DIR, "TMPDIR": temporary,
                           "PATH": os.path.dirname(DDPRUN) + os.pathsep + os.environ["PATH"]}
            done = subprocess.run([sys.executable, path], env=environment, text=True,
                                  capture_output=True, timeout=HUNG, check=False)
            self.assertEqual(done.returncode, 0, done.stderr)
            # As without --log-dir: of a run that succeeds nothing is left.
            self.assertEqual(len(os.listdir(temporary)), 1 if fails else 0)
        return done.stdout

    def test_results_come_by_rank(self):
        out = self.run_main("print(ddprun.launch(times, nproc=3, args=(5,), kwargs={'plus': 1}))")
        self.assertEqual(out, "{0: 1, 1: 6, 2: 11}\n")

    def test_the_first_exception_is_raised_as_the_object_it_was(self):
        out = self.run_main(
            "try: ddprun.launch(raises, nproc=2, args=(1,))",
            "except KeyError as error: print(error.args, 'in raises' in str(error.__cause__))",
            fails=True)
        self.assertEqual(out, "('epoch', 1) True\n")

    def test_an_exception_that_cannot_be_read_again_is_told_with_its_traceback(self):
        out = self.run_main(
            "try: ddprun.launch(unread, nproc=1)",
            "except ddprun.RankFailed as error: print(error.rank, 'raise Unread' in str(error))",
            fails=True)
        self.assertEqual(out, "0 True\n")

    def test_a_rank_that_is_killed_is_named(self):
        out = self.run_main(
            "try: ddprun.launch(dies, nproc=2)",
            "except ddprun.RankFailed as error: print(error.rank, error.exit_code, error)",
            fails=True)
        self.assertTrue(out.startswith(f"1 {-signal.SIGKILL} rank 1 "), out)

    def test_options_are_those_of_ddprun(self):
        out = self.run_main("print(ddprun.launch(once, nproc=2, args=(1,), max_restarts=1))")
        self.assertEqual(out, "{0: '1', 1: '1'}\n")

    def test_an_option_that_is_unknown_is_an_error(self):
        out = self.run_main("try: ddprun.launch(times, nproc=1, args=(1,), no_such_option=1)",
                            "except RuntimeError as error: print(error)")
        self.assertEqual(out, "ddprun ended with code 2\n")


class LaunchWithoutCloudpickle(Launch):
    without = "cloudpickle"


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
