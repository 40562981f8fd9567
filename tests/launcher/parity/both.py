"""Runs one command line under torchrun and under ddprun and keeps what can be seen of each run.

torchrun runs in copies of one process that has imported torch: the import would take 2 s of
processor time for each command line, and all else that torchrun does a tenth of that.
"""

import json
import multiprocessing
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
COPIES = multiprocessing.get_context("forkserver")
COPIES.set_forkserver_preload(["torch.distributed.run", "torch.distributed.launch"])
# What ddprun is called for each of torch's programs.
NAMES = {"torchrun": "torchrun", "launch": "ddprun-launch"}
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


def torchrun(program, words, streams, directory, variables):
    """What the program does with these words. `streams`: paths for descriptors 0 to 2."""
    for descriptor, path in enumerate(streams):
        opened = os.open(path, os.O_RDWR | os.O_APPEND)
        os.dup2(opened, descriptor)
        os.close(opened)
    os.chdir(directory)
    os.environ.clear()
    os.environ.update(variables)
    sys.stdin = open(0, encoding="utf-8", closefd=False)
    sys.argv = [str(VENV / "bin" / "torchrun"), *words]
    if program == "launch":
        from torch.distributed.launch import main
    else:
        from torch.distributed.run import main

    sys.exit(main())


class Torchrun(COPIES.Process):
    """As subprocess.Popen."""

    def __init__(self, words, streams, cwd, env, program="torchrun"):
        paths = [str(one) for one in streams]
        super().__init__(target=torchrun, args=(program, words, paths, cwd, env))
        self.start()

    def wait(self, timeout=None):
        self.join(timeout)
        if self.exitcode is None:
            raise subprocess.TimeoutExpired("torchrun", timeout)
        return self.exitcode


def ddprun(words, streams, cwd, env, program=None):
    """Likewise; as a program of torch it is called through a link of that name."""
    called = sys.argv[1]
    if program:
        called = os.path.join(cwd, NAMES[program])
        os.symlink(sys.argv[1], called)
    with open(streams[0], "r+b") as stdin, open(streams[1], "a+b") as out, open(
        streams[2], "a+b"
    ) as err:
        return subprocess.Popen(
            [called, *words], stdin=stdin, stdout=out, stderr=err, cwd=cwd, env=env
        )


LAUNCHERS = {"torchrun": Torchrun, "ddprun": ddprun}


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


def run(launcher, program, words, extra, directory):
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
    streams = [directory / name for name in ("in", "out", "err")]
    for path in streams:
        path.touch()
    process = launcher(words, streams, directory, environment(extra, str(probes)), program)
    try:
        code = process.wait(timeout=300)
    finally:
        process.kill()
        process.wait()
    read = {name: (directory / name).read_text(errors="replace") for name in ("out", "err")}
    outcome = Outcome(code, read["out"], read["err"], process.pid)
    for path in probes.glob("*.json"):
        rank, restart = path.stem.split(".")
        outcome.probes[int(rank), int(restart)] = json.loads(path.read_text())
    collect_logs(outcome, logs)
    if (directory / "reply.json").exists():
        outcome.reply = (directory / "reply.json").read_text()
    return outcome


def run_both(words, extra, program="torchrun"):
    with tempfile.TemporaryDirectory() as folder:
        outcomes = {}
        for name, launcher in LAUNCHERS.items():
            directory = pathlib.Path(folder) / name
            directory.mkdir()
            (directory / "pkg").mkdir()
            (directory / "pkg" / "__init__.py").touch()
            (directory / "pkg" / "mod.py").write_text(pathlib.Path(PROBE).read_text())
            outcomes[name] = run(launcher, program, words, extra, directory)
        return outcomes["torchrun"], outcomes["ddprun"]
