"""Terminals, files and pipes as consoles: console_test.py DDPRUN.

What a worker sees in its streams, and what is seen of it, is what torchrun gives: the kind, the
size of the window, every byte, and the order of both streams where they are the same file.
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
import threading
import unittest

HERE = pathlib.Path(__file__).resolve().parent
VENV = pathlib.Path(sys.prefix).resolve()
LAUNCHERS = {"torchrun": str(VENV / "bin" / "torchrun")}
HUNG = 120  # seconds after which a test counts as hung
OWN_LINE = re.compile(rb"ddprun: [^\n]*\n")
WORKERS_PART = re.compile(rb"<<<.*>>>", re.DOTALL)


class Terminal:
    """Lines and columns as no default has them."""

    def __init__(self):
        self.window, self.stream = pty.openpty()
        fcntl.ioctl(self.window, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 132, 0, 0))


class Pipe:
    def __init__(self):
        self.window, self.stream = os.pipe()


class File:
    def __init__(self):
        with tempfile.NamedTemporaryFile() as file:
            self.window = os.open(file.name, os.O_RDONLY)
            self.stream = os.open(file.name, os.O_WRONLY)


def read_to_end(console, seen):
    """In a thread: a terminal ends with an error."""
    while True:
        try:
            some = os.read(console.window, 65536)
        except OSError:
            some = b""
        if not some:
            break
        seen.append(some)


def seen_on(out, err, launcher):
    """What one worker wrote, console by console; `out` and `err` may be the same."""
    consoles = [out] if out is err else [out, err]
    seen = [[] for _ in consoles]
    readers = [threading.Thread(target=read_to_end, args=pair) for pair in zip(consoles, seen)]
    files = [isinstance(console, File) for console in consoles]
    for reader, file in zip(readers, files):
        if not file:
            reader.start()
    process = subprocess.Popen(
        [launcher, "--standalone", str(HERE / "console_worker.py")],
        stdin=err.stream if isinstance(err, Terminal) else subprocess.DEVNULL,
        stdout=out.stream, stderr=err.stream,
        env={"PATH": f"{VENV}/bin:/usr/bin:/bin", "VIRTUAL_ENV": str(VENV), "HOME": "/tmp",
             "LANG": "C.UTF-8", "TERM": "xterm"})
    for console in consoles:
        os.close(console.stream)
    code = process.wait(timeout=HUNG)
    for reader, file in zip(readers, files):
        if file:
            reader.start()
        reader.join(timeout=HUNG)
    for console in consoles:
        os.close(console.window)
    texts = [OWN_LINE.sub(b"", b"".join(chunks)) for chunks in seen]
    assert code == 0, texts
    return [WORKERS_PART.search(text).group() for text in texts]


class Parity(unittest.TestCase):
    def check(self, make):
        """`make` gives the two consoles of a run."""
        theirs, ours = (seen_on(*make(), LAUNCHERS[name]) for name in ("torchrun", "ddprun"))
        self.assertEqual(ours, theirs)
        return ours

    def one(self, kind):
        def make():
            console = kind()
            return console, console

        return make

    def test_one_terminal(self):
        (seen,) = self.check(self.one(Terminal))
        self.assertIn(b"\r\n2 True os.terminal_size(columns=132, lines=50)\r\n", seen)

    def test_one_file(self):
        self.check(self.one(File))

    def test_one_pipe(self):
        self.check(self.one(Pipe))

    def test_stdout_in_a_file_beside_a_terminal(self):
        out, _ = self.check(lambda: (File(), Terminal()))
        self.assertIn(b"\n2 True os.terminal_size(columns=132, lines=50)\n", out)

    def test_a_terminal_beside_stderr_in_a_file(self):
        out, _ = self.check(lambda: (Terminal(), File()))
        self.assertIn(b"\n2 False None\r\n", out)


if __name__ == "__main__":
    LAUNCHERS["ddprun"] = os.path.abspath(sys.argv.pop(1))
    unittest.main(verbosity=1)
