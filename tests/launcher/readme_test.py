"""What README.md and RECOVERY.md show: their commands are run as they stand there, and print what
stands below them.

    readme_test.py path/to/ddprun
"""

import html
import os
import pathlib
import pty
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import unittest
import urllib.request

import documented_test as documented
from documented_test import HERE, HUNG
from ports import free_port

ROOT = HERE.parents[1]
README = (ROOT / "README.md").read_text()
PROGRAM = "build/dev/bin/ddprun"
# What differs from run to run, as it is shown and as it may be.
VARIES = (
    (r"\bpid \d+", r"pid \\d+"),
    (r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", r"[-0-9a-f]{36}"),
    (r"^ddprun \d+\.\d+\.\d+", r"ddprun \\d+\\.\\d+\\.\\d+"),
    (r"\d\d:\d\d:\d\d\\\.\d{3}Z", r"\\d\\d:\\d\\d:\\d\\d\\.\\d{3}Z"),
    (r"\d+ ms after start", r"[\\d.]+ m?s after start"),
    (r"\b(at once|in \d+ ms)\b", r"(at once|(in|after) [\\d.]+ m?s)"),
    (r"\b\d s later", r"[\\d.]+ s later"),
    (r" \\\+ \d descendants?", r" \\+ \\d descendants?"),
    (r", \d+ ms$", r", \\d+ ms"),
    (r"\bgpu-01\b", re.escape(socket.gethostname().split(".")[0])),
    (r"\bvm\b", re.escape(socket.gethostname().split(".")[0])),
)
# A shell that is between two commands has started nothing; a rank may end before another one fails.
MAY_BE_ABSENT = ("[CLEANUP]", "  others ")


def block(beginning):
    """The lines of the first block of code with one that begins so."""
    for text in re.findall(r"^```\n(.*?)^```$", README, re.DOTALL | re.MULTILINE):
        lines = text.splitlines()
        if any(line.startswith(beginning) for line in lines):
            return lines
    raise AssertionError(f"README.md shows no line that begins with {beginning!r}")


def commands_with(option):
    """RECOVERY.md's commands with it: the words behind "ddprun", and what stands below."""
    text = (ROOT / "docs" / "RECOVERY.md").read_text()
    found = []
    for code in re.findall(r"^```\n(ddprun .*?)^```$", text, re.DOTALL | re.MULTILINE):
        line, *shown = code.splitlines()
        if option in line.split():
            found.append((line.split()[1:], shown))
    return found


def command(line):
    """The words of a command that README.md shows, behind its program."""
    program, *words = line.removeprefix("$ ").split()
    assert program == PROGRAM, line
    return words


def pattern(shown):
    text = re.escape(shown).replace(r"\ ", " ").replace(r"\-", "-")
    for varying, anything in VARIES:
        text = re.sub(varying, anything, text)
    return text


def ours(lines):
    """What ddprun itself writes: its notes, and its report."""
    return [line for line in lines if re.match("ddprun: |  ", line)]


class Terminal:
    """One ddprun in the background, on a terminal of its own."""

    def __init__(self, *words):
        self.leader, follower = pty.openpty()
        self.process = subprocess.Popen(
            [documented.DDPRUN, *words], cwd=ROOT, start_new_session=True, stdin=follower,
            stdout=follower, stderr=follower, env={**documented.ENVIRONMENT, "TERM": "dumb"},
            preexec_fn=lambda: os.close(os.open(os.ttyname(0), os.O_RDWR)))
        os.close(follower)
        self.seen = b""
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self):
        try:
            while part := os.read(self.leader, 65536):
                self.seen += part
        except OSError:
            pass  # the last process has closed the terminal

    def lines(self):
        return self.seen.decode(errors="replace").splitlines()

    def until(self, shown):
        """Waits for each of these lines, and takes what was written up to then."""
        deadline = time.monotonic() + HUNG
        while missing := [line for line in shown if not self.find(line)]:
            if time.monotonic() > deadline:
                raise AssertionError(f"{missing} is not in {self.lines()}")
            threading.Event().wait(0.01)
        lines, self.seen = self.lines(), b""
        return lines

    def find(self, shown):
        return any(re.fullmatch(pattern(shown), line) for line in self.lines())


class Readme(documented.Case):
    def assert_shown(self, shown, lines):
        """The lines of ddprun are those shown, all of them and in this order."""
        named = "\n".join(shown)
        late = [part for part in MAY_BE_ABSENT if part not in named]  # where the machine is slow
        lines = [line for line in ours(lines) if not any(part in line for part in late)]
        for expected in ours(shown):
            line = lines.pop(0) if lines else ""
            if any(part in expected and part not in line for part in MAY_BE_ABSENT):
                lines = [line, *lines] if line else lines
                continue
            self.assertRegex(line, f"^{pattern(expected)}$")
        self.assertEqual(lines, [])

    def test_ten_minutes_kill_one_and_press_ctrl_c(self):
        first, *shown = block("$ build/dev/bin/ddprun --standalone --nproc-per-node 2 --max")
        shown.remove("...")  # the table of ranks, whose columns are as wide as the host's name
        terminal = Terminal(*command(first))
        self.addCleanup(terminal.process.wait)
        self.addCleanup(terminal.process.kill)
        lines = terminal.until(shown)
        self.assertLessEqual(len(lines[0]), 80)
        self.assert_shown([], lines)
        victim = next(line for line in lines if ":1| " in line)
        os.kill(int(re.search(r"pid (\d+)", victim)[1]), signal.SIGKILL)
        shown = block("ddprun: warning [W-KILLED] rank 1 (local 1, pid 11606)")
        self.assert_shown(shown, terminal.until(shown[-2:]))
        os.write(terminal.leader, b"\x03")
        self.assertEqual(terminal.process.wait(HUNG), 130)
        shown = block("ddprun: note [INT]")
        terminal.reader.join(HUNG)
        self.assert_shown(shown, [line.removeprefix("^C") for line in terminal.lines()])
        self.assertIn("exit 130", shown[-1])

    def test_ten_minutes_let_one_fail(self):
        first, *shown = block("$ build/dev/bin/ddprun --standalone --nproc-per-node 2 examples/re")
        failed = subprocess.run(
            [documented.DDPRUN, *command(first)], cwd=ROOT, capture_output=True, text=True,
            timeout=HUNG, stdin=subprocess.DEVNULL, env=documented.ENVIRONMENT)
        self.assertEqual(f"  exit      code {failed.returncode}", shown[-1])
        report = failed.stderr.splitlines()
        self.assert_shown(shown, report[report.index(next(filter(
            lambda line: line.startswith("ddprun: error"), report))):])

    def test_several_nodes_on_one_machine(self):
        port = free_port()
        words = command("".join(block("build/dev/bin/ddprun --nnodes=1:2")).replace("\\", ""))
        words[words.index("--rdzv-endpoint=localhost")] += f":{port}"
        words[-1] = str(ROOT / words[-1])
        shown = block("ddprun: note [RUN] round 1: all 2 nodes joined")
        first = self.start(*words)
        first.until("coordinator localhost:")
        second = self.start(*words)
        first.until(pattern(shown[1]))
        second.until("rank 1 of 2")
        listed = subprocess.run([documented.DDPRUN, "ps"], capture_output=True, text=True,
                                env=documented.ENVIRONMENT).stdout
        pids = [int(pid) for pid in re.findall(r" (\d+) +count\.sh", listed)]
        ours = [pid for pid in pids if pid in (first.process.pid, second.process.pid)]
        self.assertEqual(ours, [first.process.pid, second.process.pid], listed)
        os.kill(ours[-1], signal.SIGKILL)
        first.until(pattern(shown[4]))
        self.start(*words)
        first.until(pattern(shown[1]), 2)
        lines = first.text().splitlines()
        begun = next(at for at, line in enumerate(lines) if "[RUN]" in line)  # after the heading
        self.assert_shown(shown, lines[begun:])
        with urllib.request.urlopen(f"http://localhost:{port}/", timeout=HUNG) as page:
            page = html.unescape(page.read().decode())
        for line in shown:
            if "[RUN]" in line:
                self.assertRegex(page, pattern(line.partition("[RUN] ")[2]))
        self.assertIn("0 of 0 restarts used, 2 nodes connected (minimum 1, maximum 2)", page)
        self.assertEqual(first.end(signal.SIGINT), 130)

    def test_command_lines_of_torchrun_are_taken_once_its_name_is_replaced(self):
        for name in ("train.py", "train", "pkg/train.py"):
            path = pathlib.Path(self.folder, name)
            path.parent.mkdir(exist_ok=True)
            path.touch(mode=0o755)
        shown = [cell for cell in re.findall(r"^\| `([^`|]+)`", README, re.MULTILINE)
                 if re.match(r"(\S+=\S+ )?torchrun |python -m |--\S+=\S*\d", cell)]
        self.assertGreaterEqual(len(shown), 9)
        for cell in shown:
            words = re.sub(r"\b(torchrun|python -m torch\.distributed\.run) ", "", cell)
            # What the GPUs of this machine are is no matter here.
            words = words.replace("=gpu", "=2").replace("--rdzv-endpoint=...", "").split()
            variables = [words.pop(0)] if "=" in words[0] and words[0][0] != "-" else []
            program = [] if "train" in words[-1] else ["train.py"]
            done = subprocess.run(
                ["env", *variables, documented.DDPRUN, "--dry-run", *words, *program],
                cwd=self.folder, capture_output=True, text=True, timeout=HUNG,
                env=documented.ENVIRONMENT)
            self.assertEqual((done.returncode, done.stderr), (0, ""), cell)

    def start_here(self, words):
        """A command line that names a program of the working directory."""
        here = os.getcwd()
        os.chdir(self.folder)
        self.addCleanup(os.chdir, here)
        return self.start(*words)

    def taken(self, pattern, count):
        """The files of workers with such a name, once there are so many."""
        deadline = time.monotonic() + HUNG
        while len(found := list(pathlib.Path(self.folder).glob(pattern))) < count:
            self.assertLess(time.monotonic(), deadline, f"{found} are not {count} of {pattern}")
            threading.Event().wait(0.01)
        return found

    def test_ranks_that_keep_their_process(self):
        shown_commands = commands_with("--restart=failed")
        self.assertEqual(len(shown_commands), 2)
        for words, shown in shown_commands:
            self.setUp()
            program = pathlib.Path(self.folder, "train")
            survivor = ROOT / "tests" / "survivors" / "survivor.py"
            program.write_text(f"#!/bin/sh\nexec '{sys.executable}' '{survivor}' '{self.folder}'\n")
            program.chmod(0o755)
            running = self.start_here(words)
            ranks = self.taken("[0-9]*.1", 4)
            if "--spares=1" in words:
                self.taken("[0-9]*.spare", 1)
            victim = next(path for path in ranks if "\nRANK=3\n" in path.read_text())
            os.kill(int(victim.stem), signal.SIGKILL)
            running.until(pattern(shown[-1]).replace("^", "(?m)^"))
            pathlib.Path(self.folder, "done").touch()
            self.assertEqual(running.end(), 0, running.text())
            lines = running.text().splitlines()
            for line in shown:
                self.assertTrue(any(re.fullmatch(pattern(line), one) for one in lines),
                                f"{line} is not in {lines}")

    def test_warm_workers(self):
        ((words, _),) = commands_with("--warm")
        script = pathlib.Path(self.folder, words[-1])
        script.write_text(
            "import os, pathlib, time\n"
            "attempt = os.environ['TORCHELASTIC_RESTART_COUNT']\n"
            "pathlib.Path(f'{os.getpid()}.{attempt}').touch()\n"
            "while not pathlib.Path('done').exists(): time.sleep(0.01)\n")
        running = self.start_here(words)
        os.kill(int(self.taken("[0-9]*.0", 8)[0].stem), signal.SIGKILL)
        self.taken("[0-9]*.1", 8)
        pathlib.Path(self.folder, "done").touch()
        self.assertEqual(running.end(), 0, running.text())
        self.assertIn("restart 1 of 10", running.text())

    def test_ddprun_needs_libc_and_libm_only(self):
        needed = subprocess.run(["ldd", documented.DDPRUN], capture_output=True, text=True).stdout
        program = pathlib.Path(documented.DDPRUN).read_bytes()
        if b"__asan_init" in program or b"__tsan_init" in program:
            self.skipTest("a sanitizer has libraries of its own")
        self.assertEqual(set(re.findall(r"\b(lib[\w+-]+)\.so", needed)), {"libc", "libm"})


if __name__ == "__main__":
    documented.DDPRUN = os.path.abspath(sys.argv.pop(1))
    unittest.main()
