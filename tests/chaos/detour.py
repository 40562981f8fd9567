"""A second port that forwards to the coordinator's, opened on request of a case."""

import select
import socket
import threading


class Detour:
    """Serves one connection at a time, on loopback."""

    def __init__(self, port: int, target: int):
        self.target = target
        self.listener = socket.create_server(("127.0.0.1", port))
        self.bell, self.ringer = socket.socketpair()
        self.thread = threading.Thread(target=self.serve, daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.ringer.close()
        self.thread.join()
        self.listener.close()
        self.bell.close()

    def serve(self) -> None:
        while self.listener in select.select([self.listener, self.bell], [], [])[0]:
            near, _ = self.listener.accept()
            with near, socket.create_connection(("127.0.0.1", self.target)) as far:
                if not self.pass_on(near, far):
                    return

    def pass_on(self, near: socket.socket, far: socket.socket) -> bool:
        """Forwards until one side, or this detour, closes; returns false in the latter case."""
        while True:
            ready = select.select([near, far, self.bell], [], [])[0]
            if self.bell in ready:
                return False
            for source, target in ((near, far), (far, near)):
                if source in ready:
                    try:
                        data = source.recv(65536)
                        target.sendall(data)
                    except OSError:
                        return True
                    if not data:
                        return True
