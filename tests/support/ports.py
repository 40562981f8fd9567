"""A TCP port that nobody has, for a program that is told its port."""

import random
import socket


def free_port() -> int:
    """Below the range from which the kernel gives ports to clients, so that it stays free."""
    while True:
        port = random.randrange(12000, 29000)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
                return port
            except OSError:
                continue
