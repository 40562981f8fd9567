"""The agent's end of the link, and the store of a round, as little of them as a test needs."""

import contextlib
import os
import socket
import struct
import subprocess
import sys
import tempfile
import threading

HUNG = 60  # seconds
HELLO, READY, SURVIVES, JOINED, STOP, ROUND = 1, 3, 5, 6, 16, 17


class FakeAgent(contextlib.ExitStack):
    """Listens for workers, which must be its children."""

    def __init__(self, python_dir):
        super().__init__()
        self.folder = self.enter_context(tempfile.TemporaryDirectory())
        self.path = os.path.join(self.folder, "link")
        self.listener = self.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET))
        self.listener.settimeout(HUNG)
        self.listener.bind(self.path)
        self.listener.listen()
        self.python_dir = python_dir

    def start(self, script, variables, python=sys.executable):
        environment = {**os.environ, "PYTHONPATH": self.python_dir, "PYTHONUNBUFFERED": "1",
                       "DDPRUN_WORKER_SOCKET": self.path, "DDPRUN_SURVIVORS": "1", **variables}
        process = subprocess.Popen([python, "-c", script], env=environment, text=True,
                                   stdout=subprocess.PIPE)
        self.callback(end, process)
        return process

    def accept(self):
        link, _ = self.listener.accept()
        self.enter_context(link)
        link.settimeout(HUNG)
        return link

    def vanish(self, link):
        """As an agent does at its end."""
        os.unlink(self.path)
        link.close()


def end(process):
    process.kill()
    process.communicate()


def variables_of(rank, world, number, port=1, restarts=0):
    return {"RANK": str(rank), "WORLD_SIZE": str(world), "LOCAL_RANK": str(rank),
            "LOCAL_WORLD_SIZE": str(world), "GROUP_RANK": "0", "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(port), "DDPRUN_ROUND": str(number),
            "TORCHELASTIC_USE_AGENT_STORE": "True",
            "TORCHELASTIC_RESTART_COUNT": str(restarts)}


def push(link, number, variables):
    block = b"".join(f"{name}={value}\0".encode() for name, value in variables.items())
    link.send(struct.pack("<BBIB", 1, ROUND, number, 1) + block)


def receive(link, kind):
    """The content of the next packet of this kind."""
    while True:
        packet = link.recv(1 << 17)
        assert packet, "the worker has closed its link"
        if packet[1] == kind:
            return packet[2:]


def joined(link):
    return struct.unpack("<I", receive(link, JOINED))[0]


class FakeStore:
    """Answers VALIDATE, PING and COMPARE_SET of any number of clients."""

    def __init__(self):
        self.values = {}
        self.lock = threading.Lock()
        self.listener = socket.socket()
        self.listener.bind(("127.0.0.1", 0))
        self.listener.listen()
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self):
        self.listener.close()

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                client, _ = self.listener.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client):
        with client, client.makefile("rwb") as stream:
            assert stream.read(5) == bytes.fromhex("00cef7853c")
            assert stream.read(1) == b"\x0d"
            stream.write(stream.read(4))
            stream.flush()
            while stream.read(1) == b"\x02":
                key, expected, desired = (self._text(stream) for _ in range(3))
                assert expected == b""
                with self.lock:
                    value = self.values.setdefault(key, desired)
                stream.write(struct.pack("<Q", len(value)) + value)
                stream.flush()

    @staticmethod
    def _text(stream):
        return stream.read(struct.unpack("<Q", stream.read(8))[0])


