"""Runs one command line under torchrun and under ddprun and keeps what can be seen of each run."""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field

HERE = pathlib.Path(__file__).resolve().parent
VENV = pathlib.Path(sys.prefix).resolve()
PROBE = str(HERE / "probe.py")
UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


@dataclass
class Outcome:
    code: int
    out: str
    err: str
    launcher_pid: int
    probes: dict = field(default_factory=dict)  # (rank, restart count) -> facts
    logs: dict = field(default_factory=dict)  # path below the run's directory -> bytes
    run_directories: list = field(default_factory=list)
    reply: str = ""  # what the launcher left for the one above it

    def lines(self, stream, marker):
        return sorted(line for line in getattr(self, stream).splitlines() if marker in line)


def launchers():
    return {"torchrun": [str(VENV / "bin" / "torchrun")], "ddprun": [sys.argv[1]]}


def environment(extra, probes):
    base = {
        "PATH": f"{VENV}/bin:/usr/bin:/bin",
        "HOME": "/tmp",
        "LANG": "C.UTF-8",
        "VIRTUAL_ENV": str(VENV),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PROBE_DIR": probes,
    }
    return {**base, **extra}


def collect_logs(outcome, directory):
    for entry in sorted(pathlib.Path(directory).iterdir()):
        outcome.run_directories.append(entry.name)
        for path in sorted(entry.rglob("*")):
            name = str(path.relative_to(entry)) + ("/" if path.is_dir() else "")
            outcome.logs[name] = path.read_bytes() if path.is_file() else b""


def run(launcher, words, extra, directory):
    """In words and variables `{logs}` becomes an empty directory of this run, `{dir}` the one it
    works in, `{probe}` the probe and `{here}` the folder of this file."""
    probes, logs = directory / "probes", directory / "logs"
    probes.mkdir()
    logs.mkdir()
    words = [
        word.replace("{logs}", str(logs)).replace("{probe}", PROBE).replace("{here}", str(HERE))
        for word in words
    ]
    extra = {
        name: value.replace("{logs}", str(logs)).replace("{dir}", str(directory))
        for name, value in extra.items()
    }
    with open(directory / "in", "w+b") as stdin, open(directory / "out", "w+b") as out, open(
        directory / "err", "w+b"
    ) as err:
        process = subprocess.Popen(
            [*launcher, *words],
            stdin=stdin,
            stdout=out,
            stderr=err,
            cwd=directory,
            env=environment(extra, str(probes)),
        )
        try:
            code = process.wait(timeout=300)
        finally:
            process.kill()
    read = {name: (directory / name).read_text(errors="replace") for name in ("out", "err")}
    outcome = Outcome(code, read["out"], read["err"], process.pid)
    for path in probes.glob("*.json"):
        rank, restart = path.stem.split(".")
        outcome.probes[int(rank), int(restart)] = json.loads(path.read_text())
    collect_logs(outcome, logs)
    if (directory / "reply.json").exists():
        outcome.reply = (directory / "reply.json").read_text()
    return outcome


def run_both(words, extra):
    with tempfile.TemporaryDirectory() as folder:
        outcomes = {}
        for name, launcher in launchers().items():
            directory = pathlib.Path(folder) / name
            directory.mkdir()
            (directory / "pkg").mkdir()
            (directory / "pkg" / "__init__.py").touch()
            (directory / "pkg" / "mod.py").write_text(pathlib.Path(PROBE).read_text())
            outcomes[name] = run(launcher, words, extra, directory)
        return outcomes["torchrun"], outcomes["ddprun"]
