"""A CA for tests in Python, made with the program openssl: it signs what the test asks for."""

import pathlib
import shutil
import subprocess

NAMES = "IP:127.0.0.1,DNS:localhost"


def missing() -> str:
    return "" if shutil.which("openssl") else "no openssl (apt install openssl)"


class Certificate:
    def __init__(self, cert: pathlib.Path, key: pathlib.Path, ca: pathlib.Path):
        self.cert, self.key, self.ca = cert, key, ca


class Ca:
    def __init__(self, folder: pathlib.Path, name: str):
        self.folder, self.name, self.issued = folder, name, 0
        self.file, self.key = folder / f"{name}.pem", folder / f"{name}.key"
        openssl("req", "-x509", *NEW_KEY, "-days", "2", "-subj", f"/CN={name}",
                "-keyout", self.key, "-out", self.file)

    def issue(self, names: str = NAMES, expired: bool = False) -> Certificate:
        """For any purpose, as every node and etcd need it."""
        self.issued += 1
        stem = self.folder / f"{self.name}-{self.issued}"
        cert, key, request = (stem.with_suffix(end) for end in (".pem", ".key", ".csr"))
        openssl("req", *NEW_KEY, "-subj", f"/CN={stem.name}", "-keyout", key, "-out", request,
                "-addext", f"subjectAltName={names}")
        openssl("x509", "-req", "-in", request, "-out", cert, *validity(expired),
                "-CA", self.file, "-CAkey", self.key, "-CAcreateserial", "-copy_extensions", "copy")
        return Certificate(cert, key, self.file)


NEW_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")


def validity(expired: bool) -> list:
    if not expired:
        return ["-days", "2"]
    words = subprocess.run(["openssl", "x509", "-help"], capture_output=True, text=True).stderr
    if "-not_before" in words:  # 3.4 and later, which refuse an end before today
        return ["-not_before", "20260101000000Z", "-not_after", "20260102000000Z"]
    return ["-days", "-1"]


def openssl(*words) -> None:
    run = subprocess.run(["openssl", *map(str, words)], capture_output=True, text=True, timeout=60)
    assert run.returncode == 0, run.stderr
