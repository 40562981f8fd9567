"""A free TCP port, for a program that takes its port as an argument."""

import random
import socket


def free_port() -> int:
    """A port below the ephemeral range, so that the kernel does not assign it to a client."""
    while True:
        port = random.randrange(12000, 29000)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
                return port
            except OSError:
                continue
