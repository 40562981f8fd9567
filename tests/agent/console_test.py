#!/usr/bin/env python3
"""What becomes of output that a console does not take, and of keys that a terminal echoes.

python3 tests/agent/console_test.py path/to/ddprun
"""

import fcntl
import itertools
import os
import pathlib
import pty
import re
import socket
import struct
import subprocess
import sys
import tempfile
import termios
import unittest

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from eventually import eventually  # noqa: E402
from ports import free_port  # noqa: E402
from sentences import kStdoutClosed  # noqa: E402
from streams import read_until  # noqa: E402

DDPRUN = ""
HUNG = 30  # seconds after which a test counts as hung
TEN_LINES = "for i in 1 2 3 4 5 6 7 8 9 10; do echo $i; done"


def run(script, *options, **streams):
    """Two workers; TMPDIR is a folder that must be empty at the end."""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [DDPRUN, "--standalone", "--nproc-per-node=2", *options, "sh", "-c", script],
            env={**os.environ, "TMPDIR": folder},
            timeout=HUNG,
            text=True,
            **streams,
        )
        done.left = [os.path.join(at, name) for at, _, names in os.walk(folder) for name in names]
        reports = [pathlib.Path(name) for name in done.left if name.endswith("report.txt")]
        done.report = "".join(report.read_text() for report in reports)
    return done


def two_nodes(script, options):
    """What two nodes on this machine write, of two workers each."""
    with tempfile.TemporaryDirectory() as folder:
        endpoint = f"--rdzv-endpoint=127.0.0.1:{free_port()}"
        runs = [subprocess.Popen(
            [DDPRUN, "--nnodes=2", "--rdzv-backend=c10d", endpoint, f"--node-rank={node}",
             f"--rdzv-conf=is_host={1 - node}", "--nproc-per-node=2", *options, "sh", "-c", script],
            env={**os.environ, "TMPDIR": folder}, stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE, text=True) for node in (0, 1)]
        return [run.communicate(timeout=HUNG)[1] for run in runs]


def closed_pipe():
    reader, writer = os.pipe()
    os.close(reader)
    return open(writer, "w")


def screen(seen):
    """The lines that a terminal shows of these bytes."""
    lines, column = [b""], 0
    for sequence, byte in re.findall(rb"(\x1b\[[^@-~]*[@-~])|(.)", seen, re.DOTALL):
        if sequence.endswith(b"K"):
            lines[-1] = lines[-1][:column]
        elif byte == b"\r":
            column = 0
        elif byte == b"\n":
            lines, column = [*lines, b""], 0
        elif byte:
            lines[-1] = lines[-1][:column] + byte + lines[-1][column + 1:]
            column += 1
    return lines


def resize(terminal, lines, columns):
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))


class Console(unittest.TestCase):
    def test_lines_that_a_full_standard_output_does_not_take_are_counted(self):
        with open("/dev/full", "w") as full:
            done = run(TEN_LINES, "--tee=1", stdout=full, stderr=subprocess.PIPE)
        self.assertEqual(done.returncode, 0)
        self.assertIn("ddprun: warning [CONSOLE] 20 lines of the workers are missing on standard "
                      "output: No space left on device\n", done.stderr)

    def test_lines_that_a_closed_standard_output_does_not_take_are_counted(self):
        with closed_pipe() as closed:
            done = run(TEN_LINES, "--tee=1", stdout=closed, stderr=subprocess.PIPE)
        self.assertEqual(done.returncode, 0)
        self.assertIn("ddprun: warning [CONSOLE] 20 lines of the workers are missing on standard "
                      "output: it was closed\n", done.stderr)

    def test_a_worker_that_writes_to_a_closed_stdout_is_told_so(self):
        python = "exec python3 -uc 'while True: print(1)'"
        for script, died, code in (
            ("while :; do echo; done", "[W-SIGNAL] rank 0 (local 0, pid *) died of SIGPIPE", 141),
            (python, "[W-EXIT] rank 0 (local 0, pid *) ended with exit code 1", 1),
        ):
            others_wait = f"[ $RANK = 0 ] || exec sleep 1000; {script}"
            with closed_pipe() as closed:
                done = run(others_wait, stdout=closed, stderr=subprocess.PIPE)
            self.assertEqual(done.returncode, code)
            headline = re.escape(died).replace(r"pid\ \*\)", r"pid \d+\) on \S+")
            self.assertRegex(done.stderr, f"ddprun: error {headline}{kStdoutClosed}, first")

    def test_a_worker_that_breaks_a_pipe_of_its_own_is_not_told_so(self):
        own_pipe = "sh -c 'kill -PIPE $PPID'; exit 3"
        done = run(own_pipe, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.assertEqual(done.returncode, 141)
        self.assertNotIn(kStdoutClosed, done.stderr)

    def test_lines_that_standard_error_does_not_take_are_counted_on_standard_output(self):
        for stream in (open("/dev/full", "w"), closed_pipe()):
            with stream:
                done = run(f"({TEN_LINES}) >&2", stdout=subprocess.PIPE, stderr=stream)
            self.assertEqual(done.returncode, 0)
            self.assertRegex(done.stdout, r"^ddprun: warning \[CONSOLE\] 20 lines of the workers "
                                          r"are missing on standard error: .*\n$")
            self.assertEqual(done.left, [])

    def test_a_report_that_standard_error_does_not_take_is_in_the_log_directory(self):
        for stream in (open("/dev/full", "w"), closed_pipe()):
            with stream:
                done = run("exit 3", stdout=subprocess.PIPE, stderr=stream)
            self.assertEqual(done.returncode, 3)
            self.assertRegex(done.stdout, r"^ddprun: standard error .*/report.txt\n$")
            self.assertIn("ended with exit code 3, first failure of the run", done.report)

    def test_why_a_report_could_not_be_kept_is_on_standard_output(self):
        removes_all = """
            [ $LOCAL_RANK = 0 ] || exec sleep 1000
            cd "${TORCHELASTIC_ERROR_FILE%/*/*/*}" && rm -r "$PWD"
            exit 3"""
        for script, options, why in (
            ("exit 3", ["--log-dir=/dev/null"], "there is no log directory"),
            (removes_all, [], "cannot write /.*/report.txt: No such file or directory"),
        ):
            with open("/dev/full", "w") as full:
                done = run(script, *options, stdout=subprocess.PIPE, stderr=full)
            self.assertEqual(done.returncode, 3)
            self.assertRegex(done.stdout, f"^ddprun: standard error .* is lost: {why}.*\n$")

    def test_a_note_does_not_stand_behind_the_echo_of_a_key(self):
        leader, process = self.start_on_terminal("printf bar; exec sleep 1000")
        seen = read_until(leader, b"bar", HUNG)
        os.write(leader, b"\x03")
        seen += read_until(leader, b"exit 130", HUNG)
        self.assertRegex(seen, rb"bar\^C\r\nddprun: note \[INT\]")
        self.assertEqual(process.wait(timeout=HUNG), 130)

    def test_a_worker_learns_of_another_size_of_the_window(self):
        script = """
            stty size <&2
            trap 'stty size <&2; kill $!; exit 0' WINCH
            echo ready
            while :; do sleep 1000 & wait; done"""
        leader, process = self.start_on_terminal(script, size=(40, 100))
        seen = read_until(leader, b"ready\r\n", HUNG)
        self.assertIn(b"\n40 100\r\n", seen)
        resize(leader, 50, 120)
        seen = read_until(leader, b"exited with code 0", HUNG)
        self.assertIn(b"50 120\r\n", seen)
        self.assertEqual(process.wait(timeout=HUNG), 0)

    def test_the_report_quotes_what_a_worker_wrote_to_the_terminal(self):
        leader, process = self.start_on_terminal("echo one; echo two >&2; echo three; exit 3")
        seen = read_until(leader, b"| three\r\n", HUNG)
        quoted = b"last lines of its output:\r\n" + b"".join(
            b"            | %s\r\n" % line for line in (b"one", b"two", b"three"))
        self.assertIn(quoted, seen)
        self.assertEqual(process.wait(timeout=HUNG), 3)

    def test_a_reader_that_pauses_loses_nothing(self):
        reader, writer = os.pipe()
        lines = 100000  # more than all queues hold
        process = subprocess.Popen(
            [DDPRUN, "--standalone", "sh", "-c", f"seq {lines}; seq {lines} >&2"],
            stdout=writer, stderr=writer)
        os.close(writer)
        seen = os.read(reader, 4096)  # it has begun
        with self.assertRaises(subprocess.TimeoutExpired):
            process.wait(timeout=3)  # longer than a stream that may lose lines waits
        with open(reader, "rb") as rest:
            seen += rest.read()
        theirs = [line for line in seen.splitlines() if line.isdigit()]
        self.assertTrue(theirs == 2 * [b"%d" % number for number in range(1, lines + 1)])
        self.assertEqual(process.wait(timeout=HUNG), 0)

    def test_the_report_is_behind_all_that_a_worker_wrote_to_its_file(self):
        with tempfile.TemporaryFile() as file:
            done = run(f"{TEN_LINES} >&2; echo last; exit 3", stdout=file, stderr=file)
            file.seek(0)
            seen = file.read().decode()
        self.assertEqual(done.returncode, 3)
        self.assertLess(seen.rindex("\nlast\n"), seen.index("ddprun: error"))

    @unittest.skipUnless(os.geteuid() == 0, "only root can hide /dev/ptmx")
    def test_without_pseudoterminals_stdout_is_inherited(self):
        hide = 'mount --bind /dev/null /dev/ptmx && exec "$@"'
        leader, process = self.start_on_terminal(
            "test -t 1 && ! test -t 2 && echo inherited", within=["unshare", "-m", "sh", "-c", hide,
                                                                "sh"])
        seen = read_until(leader, b"exited with code 0", HUNG)
        self.assertIn(b"\ninherited\r\n", seen)
        self.assertEqual(process.wait(timeout=HUNG), 0)

    def test_on_a_terminal_rank_0_is_shown_and_stderr_of_all_with_labels(self):
        host = socket.gethostname().split(".")[0].encode()
        with tempfile.TemporaryDirectory() as logs:
            leader, process = self.start_on_terminal(
                "test -t 1 && test -t 2 && echo out $RANK; echo err $RANK >&2", options=[
                    "--nproc-per-node=2", f"--log-dir={logs}"], environment={"NO_COLOR": "1"})
            seen = screen(read_until(leader, b"exited with code 0", HUNG))
            self.assertEqual(process.wait(timeout=HUNG), 0)
            (hidden,) = pathlib.Path(logs).glob("*/attempt_0/1/stdout.log")
            self.assertEqual(hidden.read_text(), "out 1\n")
            note = f"stdout of all ranks but 0 is in {hidden.parents[1]};"
            self.assertRegex(b" ".join(seen).decode(), rf"^ddprun .*: 2 ranks.*{note}")
        for line in (b"out 0", host + b":0| err 0", host + b":1| err 1"):
            self.assertEqual(seen.count(line), 1, (line, seen))
        self.assertNotIn(b"out 1", seen)

    def test_labels_have_colours_on_a_terminal(self):
        leader, process = self.start_on_terminal("echo err >&2", options=["--nproc-per-node=2"])
        seen = read_until(leader, b"exited with code 0", HUNG)
        self.assertRegex(seen, rb"\x1b\[36m[^|]*:0\| \x1b\[0merr\r\n")
        self.assertEqual(process.wait(timeout=HUNG), 0)

    def test_a_terminal_behind_labels_is_narrower_by_them(self):
        host = socket.gethostname().split(".")[0]
        leader, process = self.start_on_terminal("stty size <&1", size=(24, 80), options=[
            "--console=prefix"], environment={"NO_COLOR": "1"})
        seen = screen(read_until(leader, b"exited with code 0", HUNG))
        self.assertIn(f"{host}:0| 24 {80 - len(host) - 4}".encode(), seen)
        self.assertEqual(process.wait(timeout=HUNG), 0)

    def test_progress_bars_of_several_ranks_leave_one_line_each(self):
        host = socket.gethostname().split(".")[0].encode()
        bar = "i=0; while [ $i -lt 3000 ]; do printf '\\r%d of 3000' $i >&2; i=$((i+1)); done; "
        leader, process = self.start_on_terminal(
            bar + "printf '\\r3000 of 3000\\n' >&2", options=["--nproc-per-node=3"],
            environment={"NO_COLOR": "1"})
        seen = screen(read_until(leader, b"exited with code 0", HUNG))
        self.assertEqual(process.wait(timeout=HUNG), 0)
        bars = sorted(line for line in seen if b"of 3000" in line)
        self.assertEqual(bars, [host + b":%d| 3000 of 3000" % rank for rank in range(3)])

    def test_nested_progress_bars_leave_the_last_state_of_each(self):
        host = socket.gethostname().split(".")[0].encode()
        bars = """
            i=0; printf '\router 0' >&2
            while [ $i -lt 300 ]; do
                printf '\n\rinner %d\033[A\router %d' $i $i >&2; i=$((i+1)); done
            printf '\n\033[2K\033[A\router done\nend\n' >&2"""
        leader, process = self.start_on_terminal(
            bars, options=["--nproc-per-node=3"], environment={"NO_COLOR": "1"})
        seen = screen(read_until(leader, b"exited with code 0", HUNG))
        self.assertEqual(process.wait(timeout=HUNG), 0)
        for rank in range(3):
            label = host + b":%d| " % rank
            lines = [line[len(label):] for line in seen if line.startswith(label)]
            self.assertEqual(lines, [b"outer 0", b"outer done", b"end"])

    def test_the_last_state_of_a_bar_that_stands_still_is_shown(self):
        leader, process = self.start_on_terminal(
            "printf '\\r98 %%\\r99 %%' >&2; exec sleep 1000", options=["--nproc-per-node=2"])
        read_until(leader, b"99 %", HUNG)
        os.write(leader, b"\x03")
        read_until(leader, b"exit 130", HUNG)
        self.assertEqual(process.wait(timeout=HUNG), 130)

    def test_a_prompt_is_shown_once_and_answered_on_the_terminal(self):
        host = socket.gethostname().split(".")[0].encode()
        asks = "print('hello', input('name? ')); import sys; print('end', file=sys.stderr)"
        leader, process = self.start_on_terminal(
            f'[ $RANK = 0 ] && exec "{sys.executable}" -c "{asks}"; exec sleep 1000',
            options=["--nproc-per-node=2"], environment={"NO_COLOR": "1"})
        seen = read_until(leader, b"name? ", HUNG)
        os.write(leader, b"you\n")
        seen += read_until(leader, b"end\r\n", HUNG)
        os.write(leader, b"\x03")
        seen += read_until(leader, b"exit 130", HUNG)
        lines = screen(seen)
        at = lines.index(host + b":0| name? you")
        self.assertEqual(lines[at + 1:at + 3], [b"hello you", host + b":0| end"])
        self.assertEqual(process.wait(timeout=HUNG), 130)

    def test_tees_lose_nothing_of_a_reader_that_pauses(self):
        script = "i=0; while [ $i -lt 40 ]; do head -c 20000 /dev/zero | tr '\\0' x; echo; " \
                 "i=$((i+1)); done; echo >&2 end"
        with tempfile.TemporaryDirectory() as logs:
            reader, writer = os.pipe()
            process = subprocess.Popen(
                [DDPRUN, "--standalone", "--nproc-per-node=2", "-t", "3", f"--log-dir={logs}",
                 "sh", "-c", script], stdout=writer, stderr=writer)
            os.close(writer)
            # Longer than the pause after which lines were left out once.
            self.assertRaises(subprocess.TimeoutExpired, process.wait, 1.5)
            with open(reader, "rb") as console:
                seen = console.read()
        self.assertEqual(process.wait(timeout=HUNG), 0)
        self.assertEqual(seen.count(b"x" * 20000), 80)
        self.assertNotIn(b"not shown here", seen)

    def test_a_terminal_without_sequences_gets_none(self):
        leader, process = self.start_on_terminal(
            "for i in 1 2 3; do printf '\\r%d %%' $i >&2; sleep 0.4; done; "
            "printf '\\nname? ' >&2; sleep 1; echo >&2",
            options=["--nproc-per-node=2"], environment={"TERM": "dumb"})
        seen = read_until(leader, b"exited with code 0", HUNG)
        self.assertEqual(process.wait(timeout=HUNG), 0)
        self.assertNotIn(b"\x1b", seen)
        self.assertNotIn(b"1 %", seen)
        self.assertEqual(seen.count(b"| 3 %\r\n"), 2)
        self.assertEqual(seen.count(b"| name? "), 2)

    def test_a_full_disk_ends_no_rank_whose_stdout_is_hidden(self):
        small = 'ulimit -f 8; exec "$@"'
        leader, process = self.start_on_terminal(
            "seq 50000 && echo wrote all >&2", options=["--nproc-per-node=3"],
            within=["sh", "-c", small, "sh"], environment={"NO_COLOR": "1"})
        seen = read_until(leader, b"exited with code 0", HUNG)
        self.assertEqual(process.wait(timeout=HUNG), 0)
        self.assertEqual(seen.count(b"| wrote all\r\n"), 3)
        self.assertEqual(seen.count(b"File too large; what does not fit is missing"), 1)

    def test_the_files_of_hidden_streams_have_a_limit(self):
        with tempfile.TemporaryDirectory() as logs:
            leader, process = self.start_on_terminal(
                "[ $RANK = 0 ] || { echo first; yes line | head -c 20000000; echo last; exit 3; }",
                options=["--nproc-per-node=2"], environment={"TMPDIR": logs})
            read_until(leader, b"exit      code 3", HUNG)
            self.assertEqual(process.wait(timeout=HUNG), 3)
            files = sorted(pathlib.Path(logs).glob("*/*/attempt_0/1/stdout.log*"))
            kept = b"".join(file.read_bytes() for file in files)
        self.assertTrue(kept.startswith(b"first\n") and kept.endswith(b"last\n"))
        self.assertEqual(kept.count(b"bytes are left out here"), 1)
        self.assertLess(len(kept), 17 << 20)

    def test_labels_in_a_pipe_are_plain_and_keep_the_order(self):
        host = socket.gethostname().split(".")[0]
        done = run("echo one; echo two >&2; echo three", "--console=prefix",
                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        for rank in (0, 1):
            lines = [line for line in done.stdout.splitlines() if f":{rank}| " in line]
            self.assertEqual(lines, [f"{host}:{rank}| {word}" for word in ("one", "two", "three")])

    def test_a_traceback_behind_labels_is_not_quoted_again(self):
        script = ("test $RANK = 1 || exit 0; printf 'Traceback (most recent call last):\\n"
                  "  File \"x.py\", line 1\\nValueError: boom\\n' >&2; exit 1")
        done = run(script, "--console=prefix", stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.assertIn("its traceback is above", done.stdout)
        self.assertNotIn("| Traceback", done.stdout.split("evidence")[1])

    def test_a_coloured_traceback_is_understood_and_not_quoted_again(self):
        script = ("printf 'Traceback (most recent call last):\\n  File \033[35m\"x.py\"\033[0m\\n"
                  "\033[1;35mMemoryError\033[0m: \033[35mno room\033[0m\\n' >&2; exit 1")
        leader, process = self.start_on_terminal(script)
        seen = read_until(leader, b"exit      code 1", HUNG).decode()
        self.assertEqual(process.wait(timeout=HUNG), 1)
        self.assertIn("[W-MEMORY]", seen)
        report = seen.split("ddprun: error")[1]
        self.assertNotIn("\033", report)
        self.assertNotIn("| Traceback", report)

    def test_with_quiet_a_success_leaves_no_line_of_ddprun(self):
        done = run("echo out; echo err >&2", "--quiet", "--max-restarts=1",
                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, 2 * "out\n", 2 * "err\n"))
        leader, process = self.start_on_terminal(
            "echo $RANK >&2", options=["-q", "--nproc-per-node=2"], environment={"NO_COLOR": "1"})
        self.assertEqual(process.wait(timeout=HUNG), 0)
        seen = os.read(leader, 65536).decode().splitlines()
        host = socket.gethostname().split(".")[0]
        self.assertEqual(sorted(seen), [f"{host}:{rank}| {rank}" for rank in (0, 1)])

    def test_with_quiet_failures_stay(self):
        done = run("exit 3", "-q", "--max-restarts=1", stdout=subprocess.PIPE,
                   stderr=subprocess.PIPE)
        self.assertEqual(done.returncode, 3)
        self.assertIn("ended with exit code 3, first failure of round 2", done.stderr)
        self.assertNotIn("ddprun: note", done.stderr)

    def test_with_verbose_the_start_has_its_reasons(self):
        done = run("true", "-v", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.assertEqual(done.returncode, 0)
        self.assertIn("ddprun: note: workers: 2 (--nproc-per-node=2 from the command line)\n",
                      done.stderr)

    def test_a_terminal_says_which_nodes_are_waited_for_and_how_long(self):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        leader, process = self.start_on_terminal("true", nodes=[
            "--nnodes=2", "--rdzv-backend=c10d", f"--rdzv-endpoint=127.0.0.1:{port}"])
        seen = read_until(leader, b"\r\x1b[Kwaiting for 1 of 2 nodes, 2 s of 10 min", HUNG)
        self.assertIn(b"\r\x1b[Kwaiting for 1 of 2 nodes, 1 s of 10 min\r\x1b[K", seen)
        os.write(leader, b"\x03")
        seen += read_until(leader, b"exit 130\r\n", HUNG)
        self.assertEqual(process.wait(timeout=HUNG), 130)
        left = [line for line in screen(seen) if line.startswith(b"waiting")]
        self.assertEqual(left, [])

    def test_each_console_of_two_nodes_says_a_failure_once(self):
        script = "case $RANK in %s) echo boom >&2; exit 3;; esac; exec sleep 1000"
        for rank, options in (("0", []), ("2", []), ("2", ["--console=prefix"]), ("0|2", []),
                              ("2", ["--max-restarts=1", "--no-python"])):
            tries = (self.is_said_once(script % rank, options) for _ in range(3))
            self.assertTrue(any(tries), (rank, self.consoles))

    def is_said_once(self, script, options):
        """False also where the machine stalls, and the report does not come at once."""
        self.consoles = two_nodes(script, options)
        for console in self.consoles:
            self.assertEqual(console.splitlines()[-1], "  exit      code 3")
            self.assertEqual(console.count("ddprun: error"), 1, console)
        last_round = [console.split("restart 1 of 1")[-1] for console in self.consoles]
        own = [re.findall("rank . .*exit code 3(?! within)", console) for console in last_round]
        return all(len({line.split("ended")[0] for line in lines}) == len(lines) and
                   not any("failed" in line for line in lines) for lines in own)

    def test_no_line_of_the_start_is_wider_than_a_terminal(self):
        with tempfile.TemporaryDirectory(prefix="ddprun-", dir="/tmp") as logs:
            options = ["--max-restarts=3", "--shutdown-timeout=90", f"--log-dir={logs}",
                       "--rdzv-id=d6ec3dd2-bb9c-423d-b55b-aa7e1559cde2"]
            for console in two_nodes("true", options):
                lines = [line for line in console.splitlines() if "note [OPEN]" not in line]
                start = list(itertools.takewhile(lambda line: "ddprun: " not in line, lines))
                self.assertEqual([line for line in start if len(line) > 80], [])
                self.assertEqual(start[-1], f"  logs      {logs}")

    def test_a_terminal_says_which_ranks_a_stop_waits_for(self):
        seen = self.stop_on_terminal(size=(24, 80))
        self.assertIn(b"\r\x1b[Kstopping 1 of 2 ranks, SIGKILL in 1 s\r\x1b[K", seen)
        self.assertNotIn(b"SIGKILL in", b"\n".join(screen(seen)))
        self.assertIn(b"stopping 1 of 2\r\x1b[K", self.stop_on_terminal(size=(24, 16)))

    def test_nothing_is_redrawn_for_a_reader_who_did_not_ask(self):
        background = ["sh", "-mc", '"$@" & wait $!', "sh"]
        for other in ({"options": ["--quiet"]}, {"environment": {"TERM": "dumb"}},
                      {"options": ["--console=raw"]}, {"within": background},
                      {"size": (0, 0)}):
            self.assertNotIn(b"SIGKILL in", self.stop_on_terminal(**other), other)

    def stop_on_terminal(self, options=(), **terminal):
        """All that a terminal sees of a run in which rank 1 takes no signal but SIGKILL."""
        with tempfile.TemporaryDirectory() as folder:
            fifo = os.path.join(folder, "fifo")
            os.mkfifo(fifo)
            script = f"""
                [ $RANK = 1 ] || {{ read ready <{fifo}; exit 3; }}
                trap '' TERM; echo ready >{fifo}; exec sleep 1000"""
            leader, process = self.start_on_terminal(script, options=[
                "--nproc-per-node=2", "--shutdown-timeout=2", *options], **terminal)
            seen = read_until(leader, b"exit code 3, first failure of the run", HUNG)
            self.assertEqual(process.wait(timeout=HUNG), 3)
        return seen

    def start_on_terminal(self, script, size=(24, 80), within=(), options=(), environment={},
                          nodes=("--standalone",)):
        """Workers, one by default, in a window of their own: what reads there, and the process."""
        leader, follower = pty.openpty()
        resize(leader, *size)
        words = ["setsid", "--ctty", "--wait", *within, DDPRUN, *nodes, *options,
                 "sh", "-c", script]
        process = subprocess.Popen(words, stdin=follower, stdout=follower, stderr=follower,
                                   env={**os.environ, "TERM": "xterm", **environment})
        os.close(follower)
        self.addCleanup(os.close, leader)
        return leader, process


if __name__ == "__main__":
    DDPRUN = os.path.abspath(sys.argv.pop(1))
    unittest.main(verbosity=1)
