#!/usr/bin/env python3
"""ddprun-rdzvd as a program: its ready line, its refusals, its shutdown. Needs no torch.

python3 tests/store/daemon_test.py path/to/ddprun-rdzvd [name of one test]
"""

import json
import os
import pathlib
import re
import resource
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.request

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from eventually import eventually  # noqa: E402
from ports import free_port  # noqa: E402
from sentences import kCannotWriteOutput, kTooManyFiles  # noqa: E402
from streams import read_until  # noqa: E402

RDZVD = ""
HELLO = bytes.fromhex("00cef7853c 0d07000000")
PONG = bytes.fromhex("07000000")
HUNG = 20  # seconds after which a test is considered hung


class Daemon:
    def __init__(self, *flags, **more):
        streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **more}
        self.process = subprocess.Popen([RDZVD, *flags], text=True, **streams)
        readable, _, _ = select.select([self.process.stdout], [], [], HUNG)
        assert readable, "no ready line"
        self.ready = self.process.stdout.readline()
        self.port = int(self.ready.rsplit(":", 1)[1])

    def connect(self):
        client = socket.create_connection(("127.0.0.1", self.port), timeout=HUNG)
        client.sendall(HELLO)
        return client

    def end(self, how=signal.SIGTERM):
        self.process.send_signal(how)
        _, errors = self.process.communicate(timeout=HUNG)
        return self.process.returncode, errors

    def cpu_seconds(self):
        with open(f"/proc/{self.process.pid}/schedstat") as file:
            return int(file.read().split()[0]) / 1e9


class Agent:
    """Looks to the coordinator like the only node of a run."""

    def __init__(self, port, claim=None):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=HUNG)
        self.socket.sendall(b"DDPR")
        terms = {"nodes_min": 1, "nodes_max": 1, "max_restarts": 0}
        times = {"join_timeout_ms": 600_000, "last_call_timeout_ms": 0}
        beats = {"keep_alive_interval_ms": 1000, "keep_alive_max_attempt": 20}
        hello = {
            **{"type": "hello", "protocol": 1, "run_id": "daemon", "agent": "a1", "host": "here"},
            **{"store_port": 4000, "local_world_size": 2, "address": ""},
            **{"role": "default", "fingerprint": "", "age_ms": 0, "stop_timeout_ms": 1, "seen": 0},
            **{"terms": {**terms, **times, **beats}},
        }
        self.send({**hello, **({"claim": claim} if claim else {})})

    def send(self, message):
        body = json.dumps(message).encode()
        self.socket.sendall(len(body).to_bytes(4, "big") + body)

    def receive(self, kind):
        while True:
            length = int.from_bytes(self.socket.recv(4, socket.MSG_WAITALL), "big")
            assert length, f"closed instead of sending {kind}"
            message = json.loads(self.socket.recv(length, socket.MSG_WAITALL))
            if message["type"] == kind:
                return message


def claim_of(stamp):
    names = ("round", "author", "group_rank", "group_size", "restarts")
    claim = {name: stamp[name] for name in names if name in stamp}
    return {**claim, "state": "running"}


def status_of(port):
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/status", timeout=HUNG) as answer:
        assert answer.headers["Content-Type"] == "application/json"
        return json.load(answer)


def run(*flags, **environment):
    return subprocess.run(
        [RDZVD, *flags],
        capture_output=True,
        text=True,
        timeout=HUNG,
        env={**os.environ, **environment},
    )


class Program(unittest.TestCase):
    def test_the_ready_line_names_the_real_address_and_port(self):
        daemon = Daemon("--port", "0")
        self.assertRegex(daemon.ready, r"^ready 127\.0\.0\.1:[1-9]\d*\n$")
        self.assertEqual(daemon.connect().recv(4), PONG)
        self.assertEqual(daemon.end()[0], 0)

    def test_it_serves_an_ipv6_address(self):
        try:
            socket.socket(socket.AF_INET6).bind(("::1", 0))
        except OSError as error:
            self.skipTest(f"no IPv6 on this host: {error}")
        daemon = Daemon("--bind", "::1", "--port", "0")
        self.assertTrue(daemon.ready.startswith("ready [::1]:"))
        client = socket.create_connection(("::1", daemon.port), timeout=HUNG)
        client.sendall(HELLO)
        self.assertEqual(client.recv(4), PONG)
        daemon.end()

    def test_a_taken_port_is_one_sentence_whatever_the_environment_says(self):
        daemon = Daemon("--port", "0")
        for flag in ("0", "1", "True"):
            refused = run(
                "--port",
                str(daemon.port),
                TORCHELASTIC_USE_AGENT_STORE=flag,
                MASTER_ADDR="127.0.0.1",
                MASTER_PORT=str(daemon.port),
            )
            self.assertEqual(refused.returncode, 1)
            self.assertEqual(refused.stdout, "")
            self.assertEqual(refused.stderr.count("\n"), 1)
            self.assertIn(f"127.0.0.1:{daemon.port}: the port is in use", refused.stderr)
        daemon.end()

    def test_with_too_few_descriptors_it_says_so_in_one_line(self):
        for count in range(5, 16):
            with self.subTest(count=count):
                limit = lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (count, count))
                daemon = subprocess.Popen([RDZVD, "--port", "0"], stdout=subprocess.PIPE,
                                          stderr=subprocess.PIPE, text=True, preexec_fn=limit)
                if daemon.stdout.readline():  # enough of them
                    daemon.terminate()
                    self.assertEqual(daemon.wait(timeout=HUNG), 0)
                    daemon.communicate()
                    continue
                _, errors = daemon.communicate(timeout=HUNG)
                self.assertEqual(daemon.returncode, 1)
                self.assertRegex(errors, r"^ddprun-rdzvd: cannot .*Too many open files.*\n$")

    def test_a_name_is_not_an_address(self):
        refused = run("--bind", "localhost")
        self.assertEqual(refused.returncode, 2)
        self.assertRegex(refused.stderr, r"^ddprun-rdzvd: --bind localhost is not an IP address")

    def test_usage_errors_are_one_line_and_exit_2(self):
        port = "is not a port; use a number from 0 to 65535"
        number = "is not a positive number, such as 1000, 64KB or 8MB"
        wrong = {
            "--prt 1": "unknown option --prt",
            "-x": "unknown option -x",
            "extra": "unexpected argument extra; all arguments are options",
            "--port": "--port needs a value",
            "--bind=": "--bind needs a value",
            "--status=everyone": "--status everyone is not one of off, local and all",
            "--port 70000": f"--port 70000 {port}",
            "--port=x": f"--port x {port}",
            "--max-keys 0": f"--max-keys 0 {number}",
            "--max-value-bytes=-1": f"--max-value-bytes -1 {number}",
            "--max-runs=5QB": f"--max-runs 5QB {number}",
            "--max-runs=99999999999999999999": f"--max-runs 99999999999999999999 {number}",
            "--max-store-bytes=99999999E": f"--max-store-bytes 99999999E {number}",
        }
        for flags, sentence in wrong.items():
            refused = run(*flags.split())
            self.assertEqual(refused.returncode, 2, flags)
            whole = f"ddprun-rdzvd: {sentence} (see ddprun-rdzvd --help)\n"
            self.assertEqual(refused.stderr, whole)

    def test_a_limit_may_have_a_unit(self):
        for limit in ("4", "4B", "4k", "4 KB", "4KiB", "1m", "1 GiB"):
            daemon = Daemon("--port", "0", "--max-runs", limit)
            self.assertEqual(daemon.end()[0], 0)

    def test_help_and_version_that_cannot_be_written_are_an_error(self):
        for flag in ("--help", "--version"):
            with open("/dev/full", "w") as full:
                text = subprocess.run([RDZVD, flag], stdout=full, stderr=subprocess.PIPE, text=True)
            self.assertEqual(text.returncode, 1)
            self.assertEqual(text.stderr, f"ddprun-rdzvd: {kCannotWriteOutput}\n")

    def test_help_names_every_limit(self):
        text = run("--help")
        self.assertEqual(text.returncode, 0)
        store = ("connections", "store-bytes", "keys", "waits", "reply-bytes")
        for limit in ("agents", "runs", *store):
            self.assertIn(f"--max-{limit}", text.stdout)

    def test_a_signal_stops_it_and_all_its_clients_within_two_seconds(self):
        for how in (signal.SIGTERM, signal.SIGINT):
            daemon = Daemon("--port", "0")
            start = time.monotonic()
            clients = [daemon.connect() for _ in range(500)]
            for client in clients:
                self.assertEqual(client.recv(4), PONG)
                client.sendall(bytes.fromhex("06 01000000 00000000 01000000 00000000 6b"))
            begin = time.monotonic()
            setup = begin - start  # scales the limit on a busy machine
            code, _ = daemon.end(how)
            for client in clients:
                try:
                    self.assertEqual(client.recv(1), b"")
                except ConnectionResetError:
                    pass  # its last request had not been read
            self.assertLess(time.monotonic() - begin, max(2, 2 * setup))
            self.assertEqual(code, 0)

    def test_a_stop_signal_that_its_parent_had_blocked_ends_it(self):
        stops = [signal.SIGTERM, signal.SIGINT]
        for how in stops:
            with self.subTest(how=how):
                daemon = Daemon(
                    "--port=0",
                    preexec_fn=lambda: signal.pthread_sigmask(signal.SIG_BLOCK, stops),
                )
                self.assertEqual(daemon.end(how)[0], 0)

    def test_a_log_that_takes_nothing_delays_no_client(self):
        reader, writer = full_pipe()
        daemon = Daemon("--port", "0", stderr=writer)
        os.close(writer)
        for _ in range(3):
            daemon.connect().sendall(b"\xff")  # one log line each time
            self.assertEqual(daemon.connect().recv(4), PONG)
            self.assertEqual(status_of(daemon.port)["runs"], [])
        begin = time.monotonic()
        self.assertEqual(daemon.end()[0], 0)  # what is not written 1 s later is given up
        self.assertLess(time.monotonic() - begin, HUNG / 2)
        os.close(reader)

    def test_a_log_whose_reader_pauses_gets_every_line(self):
        reader, writer = full_pipe()
        daemon = Daemon("--port", "0", stderr=writer)
        os.close(writer)
        stranger = daemon.connect()
        self.assertEqual(stranger.recv(4), PONG)
        stranger.sendall(b"\xff")
        self.assertEqual(receive_end(stranger), b"")
        text = read_until(reader, b"closed a connection", HUNG)
        self.assertIn(b"ddprun-rdzvd warning: ", text)
        self.assertEqual(daemon.end()[0], 0)

    def test_a_log_whose_reader_is_gone_ends_nothing(self):
        reader, writer = os.pipe()
        daemon = Daemon("--port", "0", stderr=writer)
        os.close(writer)
        os.close(reader)
        stranger = daemon.connect()
        self.assertEqual(stranger.recv(4), PONG)
        stranger.sendall(b"\xff")
        self.assertEqual(receive_end(stranger), b"")
        self.assertEqual(daemon.connect().recv(4), PONG)
        self.assertEqual(daemon.end()[0], 0)

    def test_a_run_survives_the_restart_of_the_daemon(self):
        for how in (signal.SIGTERM, signal.SIGKILL):
            daemon = Daemon("--port", str(free_port()), "--state-file=off")
            before = Agent(daemon.port)
            stamp = before.receive("round")
            report = {"type": "report", "round": stamp["round"], "store_port": 4001}
            before.send({**report, "state": "running"})
            daemon.end(how)
            self.assertEqual(receive_end(before.socket), b"")
            daemon = Daemon("--port", str(daemon.port), "--state-file=off")
            after = Agent(daemon.port, claim_of(stamp))
            after.send({**report, "state": "succeeded"})
            self.assertEqual(after.receive("done")["exit_code"], 0)
            self.assertEqual(status_of(daemon.port)["runs"][0]["round"], stamp["round"])
            daemon.end()

    def test_started_again_it_serves_the_nodes_of_a_run_before_others(self):
        with tempfile.TemporaryDirectory() as folder:
            environment = {**os.environ, "XDG_STATE_HOME": folder}
            environment.pop("STATE_DIRECTORY", None)
            daemon = Daemon("--port", str(free_port()), env=environment)
            before = Agent(daemon.port)
            stamp = before.receive("round")
            found = pathlib.Path(folder).glob
            self.assertTrue(eventually(lambda: list(found("ddprun/rdzvd-*.json"))))
            (state,) = found("ddprun/rdzvd-*.json")
            self.assertEqual(state.stat().st_mode & 0o777, 0o600)
            self.assertRegex(state.name, rf"-127\.0\.0\.1-{daemon.port}\.json$")
            daemon.end(signal.SIGKILL)
            daemon = Daemon("--port", str(daemon.port), env=environment)
            self.assertEqual(receive_end(Agent(daemon.port).socket), b"")
            after = Agent(daemon.port, claim_of(stamp))
            after.send({"type": "report", "round": stamp["round"], "store_port": 4001,
                        "state": "succeeded"})
            self.assertEqual(after.receive("done")["exit_code"], 0)
            after.socket.close()
            self.assertTrue(eventually(lambda: not state.exists()))
            self.assertIn("its nodes have 5 s", daemon.end()[1])

    def test_the_status_of_a_daemon_without_runs(self):
        daemon = Daemon("--port", "0")
        status = status_of(daemon.port)
        self.assertEqual(status["runs"], [])
        self.assertEqual(status["connections"], 1)
        daemon.end()

    def test_a_limit_set_by_a_flag_is_enforced_and_named(self):
        daemon = Daemon("--port", "0", "--max-key-bytes", "4")
        client = daemon.connect()
        self.assertEqual(client.recv(4), PONG)
        client.sendall(bytes.fromhex("03 05000000 00000000") + b"12345")
        self.assertEqual(receive_end(client), b"")
        _, errors = daemon.end()
        self.assertIn("GET: key length 5, more than key_bytes = 4 peer=127.0.0.1:", errors)

    def test_out_of_descriptors_it_idles_and_recovers(self):
        low = (200, 200)
        limit = lambda: resource.setrlimit(resource.RLIMIT_NOFILE, low)
        daemon = Daemon("--port", "0", preexec_fn=limit)
        # UBSan needs a descriptor when it first inspects a type, so one line is logged early.
        probe = daemon.connect()
        self.assertEqual(probe.recv(4), PONG)
        probe.sendall(b"\xff")
        self.assertEqual(receive_end(probe), b"")
        clients = [daemon.connect() for _ in range(400)]
        served = [client for client in clients[:150] if client.recv(4) == PONG]
        self.assertEqual(len(served), 150)
        before = daemon.cpu_seconds(), time.monotonic()
        select.select([clients[-1]], [], [], 2)  # two idle seconds
        used = daemon.cpu_seconds() - before[0]
        self.assertLess(used, 0.5 * (time.monotonic() - before[1]))
        served[0].sendall(HELLO)
        self.assertEqual(served[0].recv(4), PONG)
        for client in clients[:300]:
            client.close()
        self.assertEqual(clients[-1].recv(4), PONG)
        _, errors = daemon.end()
        self.assertEqual(len(re.findall(kTooManyFiles, errors)), 1)


def full_pipe():
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    try:
        while True:
            os.write(writer, b"x" * 4096)
    except BlockingIOError:
        os.set_blocking(writer, True)
    return reader, writer


def receive_end(client):
    """The bytes before the end of the connection, a FIN or a reset."""
    try:
        return client.recv(100)
    except ConnectionResetError:
        return b""


if __name__ == "__main__":
    RDZVD = sys.argv[1]
    unittest.main(argv=[sys.argv[0], "--verbose", *sys.argv[2:]], warnings="ignore")
