#!/usr/bin/env python3
"""ddprun-rdzvd under exactly the filters of its systemd unit, without systemd.

python3 tests/install/service_test.py UNIT path/to/ddprun-rdzvd path/to/ddprun COMPILER
"""

import json
import os
import pathlib
import select
import shlex
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import unittest
import urllib.request

import seccomp

SKIPPED = 77
HUNG = 30  # seconds after which a test is considered hung
DYNAMIC_USER = 61184  # the first of the range that systemd takes
HELLO = bytes.fromhex("00cef7853c 0d07000000")
PONG = bytes.fromhex("07000000")
UNIT = RDZVD = DDPRUN = None
NUMBERS = {}


def text(content):
    return struct.pack("<Q", len(content)) + content


def receive(client, size):
    content = b""
    while len(content) < size:
        piece = client.recv(size - len(content))
        if not piece:
            raise AssertionError(f"closed after {len(content)} of {size} bytes")
        content += piece
    return content


class Service:
    """The daemon as systemd would start it, on a free port of loopback."""

    def __init__(self, without=()):
        words = shlex.split(UNIT.only("ExecStart"))
        values = {"${BIND}": "127.0.0.1", "${PORT}": "0"}
        # Its folder may be closed to the dynamic user, who then executes the open file.
        program = os.open(RDZVD, os.O_RDONLY | os.O_CLOEXEC)
        self.folder = tempfile.TemporaryDirectory()  # in the place of its StateDirectory
        os.chmod(self.folder.name, 0o755)
        state = pathlib.Path(self.folder.name, "state")
        state.mkdir(mode=0o700)
        os.chown(state, DYNAMIC_USER, DYNAMIC_USER)
        self.runs = state / "runs.json"
        self.process = subprocess.Popen(
            [*(values.get(word, word) for word in words), f"--state-file={self.runs}"],
            executable=f"/proc/self/fd/{program}",
            pass_fds=(program,),
            cwd="/",
            env={"PATH": "/usr/bin"},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=seccomp.installer(
                seccomp.build(UNIT, NUMBERS, without), DYNAMIC_USER
            ),
        )
        os.close(program)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.communicate()
        self.folder.cleanup()

    def wait_until_ready(self):
        readable, _, _ = select.select([self.process.stdout], [], [], HUNG)
        line = self.process.stdout.readline() if readable else ""
        if not line:
            raise AssertionError(f"no ready line; exit code {self.process.wait(HUNG)}")
        self.port = int(line.rsplit(":", 1)[1])

    def connect(self):
        client = socket.create_connection(("127.0.0.1", self.port), timeout=HUNG)
        try:
            client.sendall(HELLO)
            if receive(client, 4) != PONG:
                raise AssertionError("no PONG")
        except BaseException:
            client.close()
            raise
        return client


def use_store(service):
    with service.connect() as waiter, service.connect() as writer:
        waiter.sendall(b"\x06" + struct.pack("<Q", 1) + text(b"key"))  # WAIT
        value = b"v" * 1_000_000
        writer.sendall(b"\x01" + text(b"key") + text(value))  # SET
        if receive(waiter, 1) != b"\0":
            raise AssertionError("the waiter was not woken")
        waiter.sendall(b"\x03" + text(b"key"))  # GET
        if receive(waiter, 8 + len(value)) != text(value):
            raise AssertionError("another value")


def run_of_two_agents(service):
    command = [DDPRUN, "--nnodes=2", "--nproc-per-node=2", "--no-python"]
    command += ["--rdzv-backend=c10d", "--rdzv-conf=is_host=0"]
    command += [f"--rdzv-endpoint=127.0.0.1:{service.port}", "--rdzv-id=unit", "/bin/true"]
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "XDG_RUNTIME_DIR": folder}
        streams = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
        agents = [subprocess.Popen(command, env=environment, **streams) for _ in range(2)]
        for agent in agents:
            said, _ = agent.communicate(timeout=HUNG)
            if agent.returncode != 0:
                raise AssertionError(said)


def status_page(service):
    page = f"http://127.0.0.1:{service.port}/status"
    with urllib.request.urlopen(page, timeout=HUNG) as answer:
        return json.load(answer)


def serve_everything(service):
    service.wait_until_ready()
    use_store(service)
    run_of_two_agents(service)
    runs = status_page(service)["runs"]
    if [run["run_id"] for run in runs] != ["unit"]:
        raise AssertionError(runs)


class UnitFile(unittest.TestCase):
    def test_the_daemon_does_all_its_work_under_the_filters(self):
        with Service() as service:
            serve_everything(service)
            status = pathlib.Path(f"/proc/{service.process.pid}/status").read_text()
            self.assertRegex(status, r"Seccomp:\s*2\n")
            self.assertRegex(status, r"NoNewPrivs:\s*1\n")
            self.assertRegex(status, r"CapEff:\s*0+\n")
            service.process.send_signal(signal.SIGTERM)
            self.assertEqual(service.process.wait(HUNG), 0)
            self.assertNotIn("cannot keep", service.process.communicate()[1])
            self.assertFalse(service.runs.exists())

    def test_it_ends_where_a_call_that_it_needs_is_taken_out(self):
        for call in ("accept4", "epoll_wait", "recvfrom", "rt_sigaction"):
            with self.subTest(call), Service(without=[call]) as service:
                # What fails first depends on the call; that SIGSYS ended it does not.
                with self.assertRaises((AssertionError, OSError)):
                    serve_everything(service)
                self.assertEqual(service.process.wait(HUNG), -signal.SIGSYS)

    def test_what_the_unit_forbids_is_refused(self):
        probes = {
            "import socket; socket.socket(socket.AF_UNIX)": "Address family not supported",
            "import mmap; mmap.mmap(-1, 4096, prot=7)": "Operation not permitted",
            "import os; os.system('true')": None,
            "import os; os.chroot('/')": signal.SIGSYS,
            "import ctypes; ctypes.CDLL(None).mount(0, 0, 0, 0, 0)": signal.SIGSYS,
            "import ctypes; ctypes.CDLL(None).ptrace(0, 0, 0, 0)": signal.SIGSYS,
        }
        install = seccomp.installer(seccomp.build(UNIT, NUMBERS), DYNAMIC_USER)
        for code, expected in probes.items():
            with self.subTest(code):
                done = subprocess.run(
                    ["/usr/bin/python3", "-I", "-c", code],
                    cwd="/",
                    capture_output=True,
                    text=True,
                    timeout=HUNG,
                    preexec_fn=install,
                )
                if isinstance(expected, signal.Signals):
                    self.assertEqual(done.returncode, -expected, done.stderr)
                elif expected:
                    self.assertIn(expected, done.stderr)
                else:
                    self.assertEqual(done.returncode, 0, done.stderr)

    def test_the_stored_sets_have_what_systemd_names_here(self):
        if not seccomp.shutil.which("systemd-analyze"):
            self.skipTest("systemd-analyze is not installed")
        for name in ("@system-service", "@privileged"):
            # Another release of systemd knows more; what both allow is what the daemon may use.
            known = set(NUMBERS)
            missing = seccomp.stored_set(name) & known - seccomp.expand(name)
            self.assertFalse(missing, f"{name} has lost calls")


def main():
    global UNIT, RDZVD, DDPRUN, NUMBERS
    reason = seccomp.reason_to_skip()
    if reason:
        print(reason)
        sys.exit(SKIPPED)
    UNIT = seccomp.Unit(sys.argv.pop(1))
    RDZVD, DDPRUN, compiler = (sys.argv.pop(1) for _ in range(3))
    NUMBERS = seccomp.call_numbers(compiler)
    unittest.main()


if __name__ == "__main__":
    main()
