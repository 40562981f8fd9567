#!/usr/bin/env python3
"""Clients of the control socket that are slow, silent, hostile or of another user.

python3 tests/control/hostile_test.py path/to/ddprun
"""

import json
import os
import shutil
import socket
import subprocess
import sys
import time
import unittest

from runs import DDPRUN, HUNG, WAITS, eventually, standalone

CONNECTIONS = 1000


def connect(run):
    client = socket.socket(socket.AF_UNIX)
    client.settimeout(HUNG)
    client.connect(str(run.sockets()[0]))
    return client


def memory_of(pid):
    with open(f"/proc/{pid}/status") as status:
        (line,) = [one for one in status if one.startswith("VmRSS")]
    return int(line.split()[1]) * 1024


def read_all(client):
    text = b""
    while True:
        try:
            piece = client.recv(65536)
        except ConnectionResetError:
            return text
        if not piece:
            return text
        text += piece


class Hostile(unittest.TestCase):
    def setUp(self):
        self.run_ = standalone("sh", "-c", WAITS)
        self.addCleanup(self.run_.__exit__)
        self.run_.wait_until_up()

    def answers(self):
        return self.run_.status()["state"] == "running"

    def test_an_endless_line_is_cut_off_and_costs_no_memory(self):
        agent = int(self.run_.sockets()[0].name.split("-")[0])
        before = memory_of(agent)
        with connect(self.run_) as client:
            with self.assertRaises(OSError):
                for _ in range(1000):
                    client.sendall(b"x" * 65536)
        self.assertLess(memory_of(agent), before + 2_000_000)
        self.assertTrue(self.answers())

    def test_what_is_no_request_is_refused_with_the_reason(self):
        for text in (b"\n", b"{}\n", b"[1]\n", b"[[[[[[[[1]]]]]]]]\n", b'{"command":"x\\u001b"}\n',
                     b'{"command":"signal","signal":0}\n', b'{"command":"signal","signal":"9"}\n',
                     b'{"command":"signal","signal":65}\n', b'\xff\xfe\n', b'{"command":1}\n'):
            with connect(self.run_) as client:
                client.sendall(text)
                answer = json.loads(read_all(client))
            self.assertFalse(answer["ok"], text)
            self.assertIn("malformed", answer["text"])
            self.assertNotIn("\x1b", answer["text"])
        self.assertTrue(self.answers())

    def test_a_thousand_silent_connections_do_not_delay_the_end_of_the_run(self):
        clients = []
        for _ in range(CONNECTIONS):
            client = socket.socket(socket.AF_UNIX)
            client.setblocking(False)
            try:
                client.connect(str(self.run_.sockets()[0]))
            except BlockingIOError:
                client.close()
                break
            clients.append(client)
        try:
            began = time.monotonic()
            code, _, _ = self.run_.end()
            self.assertEqual(code, 143)
            self.assertLess(time.monotonic() - began, 5)
        finally:
            for client in clients:
                client.close()

    def test_half_a_request_is_given_up(self):
        with connect(self.run_) as client:
            client.sendall(b'{"command":"sta')
            self.assertEqual(read_all(client), b"")
        self.assertTrue(self.answers())

    def test_another_user_is_kept_out(self):
        if os.geteuid() != 0 or shutil.which("setpriv") is None:
            self.skipTest("needs root and setpriv")
        os.chmod(self.run_.folder.name, 0o755)
        other = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--"]
        for words in (["ps"], ["status", str(self.run_.process.pid)]):
            asked = subprocess.run([*other, DDPRUN, *words], env=self.run_.environment,
                                   capture_output=True, text=True, check=False, timeout=HUNG)
            self.assertNotIn(f" {self.run_.process.pid} ", asked.stdout)
            self.assertNotIn("running", asked.stdout)
        # Also where the directory were open: the kernel says who asks.
        place = os.path.dirname(self.run_.sockets()[0])
        os.chmod(place, 0o755)
        os.chmod(self.run_.sockets()[0], 0o777)
        script = ("import socket,sys;s=socket.socket(socket.AF_UNIX);s.settimeout(20);"
                  "s.connect(sys.argv[1]);s.sendall(b'{\"command\":\"stop\"}\\n');print(s.recv(9))")
        asked = subprocess.run([*other, sys.executable, "-c", script, str(self.run_.sockets()[0])],
                               capture_output=True, text=True, check=False, timeout=HUNG)
        os.chmod(place, 0o700)
        self.assertEqual(asked.stdout, "b''\n", asked.stderr)
        self.assertTrue(self.answers())


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[2:]])
