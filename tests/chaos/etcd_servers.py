"""Debian's etcd-server: members of one cluster on loopback, started and ended by the test."""

import base64
import json
import os
import pathlib
import shutil
import signal
import socket
import ssl
import subprocess
import tempfile
import time
import urllib.error
import urllib.request

from harness import Failed, clean_environment, free_port, pause

START_SECONDS = 60
CALL_SECONDS = 5


def missing() -> str:
    return "" if shutil.which("etcd") else "no etcd (apt install etcd-server)"


class Etcd:
    """Use in a `with` statement."""

    def __init__(self, folder: pathlib.Path, members: int = 3, certificate=None, own=None,
                 disk: pathlib.Path | None = None):
        """`certificate`: of the members' client ports, which then want one of the same CA from
        their clients; `own` is that of this class. `disk`: where they write, else into memory."""
        self.folder = folder
        self.certificate = certificate
        self.trust = None
        if certificate is not None:
            self.trust = ssl.create_default_context(cafile=certificate.ca)
            self.trust.load_cert_chain(own.cert, own.key)
        # A busy disk delays its elections by more than their time-out, again and again.
        memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
        self.data = pathlib.Path(tempfile.mkdtemp(prefix="ddprun_etcd_", dir=disk or memory))
        self.ports = [(free_port(), free_port()) for _ in range(members)]
        self.members: list[subprocess.Popen | None] = [None] * members

    def __enter__(self):
        for index in range(len(self.members)):
            self.start(index)
        self.wait_until_it_answers()
        return self

    def __exit__(self, *_):
        for member in self.members:
            if member is not None and member.poll() is None:
                member.send_signal(signal.SIGCONT)
                member.kill()
                member.wait()
        shutil.rmtree(self.data, ignore_errors=True)

    @property
    def endpoints(self) -> str:
        return ",".join(f"127.0.0.1:{client}" for client, _ in self.ports)

    @property
    def scheme(self) -> str:
        return "http" if self.certificate is None else "https"

    def start(self, index: int) -> None:
        client, peer = self.ports[index]
        peers = ",".join(f"m{i}=http://127.0.0.1:{port}" for i, (_, port) in enumerate(self.ports))
        client_url, peer_url = f"{self.scheme}://127.0.0.1:{client}", f"http://127.0.0.1:{peer}"
        tls = []
        if self.certificate is not None:
            tls = [f"--cert-file={self.certificate.cert}", f"--key-file={self.certificate.key}",
                   f"--trusted-ca-file={self.certificate.ca}", "--client-cert-auth"]
        with open(self.folder / f"etcd{index}.log", "ab") as log:
            self.members[index] = subprocess.Popen(
                ["etcd", f"--name=m{index}", f"--data-dir={self.data}/m{index}",
                 f"--listen-client-urls={client_url}", f"--advertise-client-urls={client_url}",
                 f"--listen-peer-urls={peer_url}", f"--initial-advertise-peer-urls={peer_url}",
                 f"--initial-cluster={peers}", "--heartbeat-interval=100",
                 "--election-timeout=1000", *tls],
                env=clean_environment(), stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def kill(self, index: int) -> None:
        self.members[index].kill()
        self.members[index].wait()

    def is_alive(self, index: int) -> bool:
        return self.members[index].poll() is None

    def leader(self) -> int:
        """The member that leads the cluster."""
        for index in range(len(self.members)):
            if not self.is_alive(index):
                continue
            status = self.call("/v3/maintenance/status", {}, index)
            if status["leader"] == status["header"]["member_id"]:
                return index
        raise Failed("no member of etcd leads")

    def wait_until_it_answers(self) -> None:
        deadline = time.monotonic() + START_SECONDS
        while True:
            try:
                self.call("/v3/kv/range", {"key": text64("x")})
                return
            except (OSError, Failed) as error:
                if time.monotonic() > deadline:
                    raise Failed(f"hang: etcd does not answer: {error}") from None
                pause(0.05)

    def wait_until_it_listens(self) -> None:
        """Whatever it thinks of its clients."""
        deadline = time.monotonic() + START_SECONDS
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.ports[0][0]), CALL_SECONDS).close()
                return
            except OSError as error:
                if time.monotonic() > deadline:
                    raise Failed(f"hang: etcd does not listen: {error}") from None
                pause(0.05)

    def call(self, path: str, body: dict, index: int | None = None, token: str = "") -> dict:
        """One request to a member that lives."""
        if index is None:
            index = next(i for i in range(len(self.members)) if self.is_alive(i))
        request = urllib.request.Request(
            f"{self.scheme}://127.0.0.1:{self.ports[index][0]}{path}", json.dumps(body).encode(),
            {"Authorization": token} if token else {})
        try:
            with urllib.request.urlopen(request, timeout=CALL_SECONDS,
                                        context=self.trust) as answer:
                return json.loads(answer.read())
        except urllib.error.HTTPError as error:
            raise Failed(f"etcd: {path}: {error.read().decode()}") from None

    def value(self, key: str) -> dict | None:
        """What stands under the key."""
        found = self.call("/v3/kv/range", {"key": text64(key)}).get("kvs", [])
        return json.loads(base64.b64decode(found[0]["value"])) if found else None

    def compact(self) -> None:
        """Everything before the present revision."""
        now = self.call("/v3/kv/put", {"key": text64("x")})["header"]["revision"]
        self.call("/v3/kv/compaction", {"revision": now, "physical": True})

    def require_password(self, user: str, password: str) -> None:
        for name, secret in (("root", "toor"), (user, password)):
            self.call("/v3/auth/user/add", {"name": name, "password": secret})
        self.call("/v3/auth/role/add", {"name": "root"})
        self.call("/v3/auth/role/add", {"name": "runs"})
        everything = {"permType": "READWRITE", "key": text64("/ddprun/"),
                      "range_end": text64("/ddprun0")}
        self.call("/v3/auth/role/grant", {"name": "runs", "perm": everything})
        self.call("/v3/auth/user/grant", {"user": "root", "role": "root"})
        self.call("/v3/auth/user/grant", {"user": user, "role": "runs"})
        self.call("/v3/auth/enable", {})


def text64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()
