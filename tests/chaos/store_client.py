"""A one-page c10d store client, for the rendezvous of workers without torch."""

import socket
import struct
import threading
import time

MAGIC = 0x3C85F7CE
RETRY_SECONDS = 0.02


class Store:
    """Connects like torch's client: retries for `seconds`."""

    def __init__(self, host: str, port: int, seconds: float):
        deadline = time.monotonic() + seconds
        while True:
            try:
                self.socket = socket.create_connection((host, port), timeout=seconds)
                self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                self.socket.sendall(struct.pack("<BIBI", 0, MAGIC, 13, 77))
                if self.receive(4) == struct.pack("<I", 77):
                    return
            except OSError as error:
                if time.monotonic() > deadline:
                    raise TimeoutError(f"no store at {host}:{port}: {error}") from error
            threading.Event().wait(RETRY_SECONDS)

    def set(self, key: str, value: bytes) -> None:
        self.socket.sendall(b"\x01" + text(key) + packed(value))

    def get(self, key: str) -> bytes:
        self.socket.sendall(b"\x03" + text(key))
        return self.receive(struct.unpack("<Q", self.receive(8))[0])

    def add(self, key: str, delta: int) -> int:
        self.socket.sendall(b"\x04" + text(key) + struct.pack("<q", delta))
        return struct.unpack("<q", self.receive(8))[0]

    def wait(self, key: str) -> None:
        self.socket.sendall(b"\x06" + struct.pack("<Q", 1) + text(key))
        self.receive(1)

    def receive(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            more = self.socket.recv(size - len(data))
            if not more:
                raise ConnectionResetError("the store closed the connection")
            data += more
        return data


def packed(value: bytes) -> bytes:
    return struct.pack("<Q", len(value)) + value


def text(key: str) -> bytes:
    return packed(key.encode())
