"""Shared by the tests with torch: ranks with an agent-like store, the launcher, skipping.

Programs come from the environment (set by CMake): TRAINER, DDP_STEPS, DDPRUN, RDZVD.
"""

import atexit
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "support"))
from ports import free_port  # noqa: E402, F401: for the tests
from preload import preloadable  # noqa: E402

SKIPPED = 77
LIMIT_S = 800


def skip(reason):
    print(f"skipped: {reason}")
    sys.exit(SKIPPED)


def program(variable):
    path = os.environ.get(variable, "")
    if not path or not os.access(path, os.X_OK):
        skip(f"{variable} is not built")
    return path


def folder():
    """A temporary folder that lives as long as the test."""
    made = pathlib.Path(tempfile.mkdtemp(prefix="ddprun_trainer_"))
    atexit.register(shutil.rmtree, made, ignore_errors=True)
    return made


class Store:
    """A store as that of an agent, without the 2 s that Python takes to import torch's."""

    def __init__(self):
        command = [program("RDZVD"), "--port", "0"]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        atexit.register(self.close)
        self.port = int(self.process.stdout.readline().rsplit(":", 1)[1])

    def close(self):
        self.process.kill()
        self.process.communicate()
        atexit.unregister(self.close)


class Ranks:
    """Worker processes that rendezvous in a store of their own, as under an agent."""

    def __init__(self, world, extra=None):
        self.store = Store()
        self.world = world
        self.extra = extra or {}
        self.processes = []

    def environment(self, rank):
        variables = dict(
            os.environ,
            RANK=str(rank),
            LOCAL_RANK=str(rank),
            WORLD_SIZE=str(self.world),
            LOCAL_WORLD_SIZE=str(self.world),
            MASTER_ADDR="127.0.0.1",
            MASTER_PORT=str(self.store.port),
            TORCHELASTIC_USE_AGENT_STORE="True",
            OMP_NUM_THREADS="1",
        )
        variables.update(self.extra)
        return variables

    def start(self, command):
        return self.start_each([command] * self.world)

    def start_each(self, commands):
        """One command per rank."""
        for rank, command in enumerate(commands):
            self.processes.append(
                subprocess.Popen(
                    [str(word) for word in command],
                    env=self.environment(rank),
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    text=True,
                )
            )
        return self

    def finish(self):
        """Rank 0's stdout; every rank must have exited with 0."""
        try:
            results = [process.communicate(timeout=LIMIT_S) for process in self.processes]
        finally:
            for process in self.processes:
                if process.poll() is None:
                    process.kill()
            self.store.close()
        for rank, process in enumerate(self.processes):
            assert process.returncode == 0, f"rank {rank}: {process.returncode}\n{results[rank][1]}"
        return results[0][0]


class SlowDisk:
    """From stall() to go_on() processes with `variables` do not write a last checkpoint."""

    def __init__(self, model_dir):
        disk = f"{model_dir}/.resnet18.last"
        self.flag = pathlib.Path(f"{disk}.stalled")
        library = preloadable(program("SLOW_DISK_LIBRARY"))
        self.variables = {"LD_PRELOAD": library, "SLOW_DISK": disk}

    def stall(self):
        self.flag.touch()

    def go_on(self):
        self.flag.unlink(missing_ok=True)


def run_ranks(world, command):
    return Ranks(world).start(command).finish()


def generated(model_dir, *arguments, width=8):
    """Arguments of a short run on synthetic images."""
    base = ["--generated", "--width", width, "--model-dir", model_dir]
    limits = ["--limit-train", 640, "--limit-test", 101, "--batch-size", 64]
    return [program("TRAINER"), *base, *limits, *arguments]


def weights_of(output):
    return re.search(r"^weights ([0-9a-f]{16})$", output, re.MULTILINE).group(1)


def accuracy_of(output):
    return float(re.search(r"^final: .*test accuracy ([0-9.]+) %", output, re.MULTILINE).group(1))


def step_in(path):
    """The step of a checkpoint."""
    import json

    data = pathlib.Path(path).read_bytes()
    size = int.from_bytes(data[:8], "little")
    return int(json.loads(data[8 : 8 + size])["__metadata__"]["ddprun.step"])


def read_safetensors(path):
    """Maps names to tensors without the safetensors package, which may be missing."""
    import json

    import torch

    types = {"F32": torch.float32, "I64": torch.int64}
    data = bytearray(pathlib.Path(path).read_bytes())
    size = int.from_bytes(data[:8], "little")
    tensors = {}
    for name, entry in json.loads(data[8 : 8 + size]).items():
        if name != "__metadata__":
            begin, end = (8 + size + offset for offset in entry["data_offsets"])
            flat = torch.frombuffer(data[begin:end], dtype=types[entry["dtype"]])
            tensors[name] = flat.reshape(entry["shape"])
    return tensors


def real_images():
    """The unpacked CIFAR-10 of $CIFAR10_SOURCE, kept in the build folder."""
    script, source = os.environ["GET_CIFAR10"], os.environ.get("CIFAR10_SOURCE")
    if not source:
        skip("CIFAR10_SOURCE is not set: no real images")
    if not os.access(script, os.X_OK):
        skip("scripts/get-cifar10 is not there")
    target = pathlib.Path(os.environ["IMAGES_DIR"])
    python = str(pathlib.Path(sys.executable).parent)
    environment = dict(os.environ, PATH=python + os.pathsep + os.environ["PATH"])
    subprocess.run([script, str(target)], check=True, env=environment)
    return target
