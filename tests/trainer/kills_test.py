#!/usr/bin/env python3
"""Ranks of a training are killed and stopped at random moments under ddprun --restart=failed: in a
step, in an all-reduce, while others recover. Nothing hangs, every sample is used once, the final
weights are those of an undisturbed run, and no process is left.

kills_test.py DDPRUN trainer|example PROGRAM [KILLS]
KILLS_SEED: the moments; KILLS_OPTIONS: more options of ddprun, as --spares=1; KILLS_KEEP: a run
that hangs stays as it is.

PROGRAM: resnet18_cifar10, or the folder with the Python module. A signal by which a rank ends is a
kill: SIGKILL, or SIGSTOP without an end, which --rejoin-timeout replaces when another rank is lost.
"""

import json
import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path += [str(ROOT / "tests" / folder) for folder in ("chaos", "support", "trainer/torch")]
from processes import describe, is_alive, kill, with_mark  # noqa: E402
from eventually import eventually  # noqa: E402
from recover_test import logged  # noqa: E402

RANKS, KILLS_OF_A_RUN, LIMIT_S = 4, 6, 180
KILL, STOP_AND_KILL, PAUSE = 0.75, 0.1, 0.15  # how often
SKIPPED = 77
NEVER = threading.Event()  # its wait is a random moment


class Trainer:
    """The C++ trainer: rank 0 prints every step, every rank logs the samples of each."""

    step_line, weights_line = r"train step (\d+)/", r"weights ([0-9a-f]{16})$"
    words = ["--no-python"]

    def __init__(self, program):
        self.command = [program, "--generated", "--width", 8, "--amp", "off", "--limit-train", 640,
                        "--limit-test", 101, "--batch-size", 64, "--epochs", 8, "--log-every", 1,
                        "--deterministic", 4, "--checkpoint-every", "off", "--recover"]
        self.steps = 80
        self.environment = {}

    def start(self, folder):
        return [*self.command, "--model-dir", folder, "--sample-log", folder / "log"]

    def samples(self, folder, _):
        steps = logged(folder)  # a step that is logged twice has the same samples twice
        assert len(steps) == self.steps, sorted(steps)
        return steps


class Example:
    """examples/elastic with more steps: the step alone determines its samples, every process prints
    each of its own, and the weights are equal only if each was applied once."""

    step_line, weights_line = r".*\bstep (\d+) of round", r".*\bdone: (.*)$"
    words = ["--warm=first", "--preload=torch,torch.distributed,torch.nn.parallel,torch._dynamo",
             "--tee=1"]

    def __init__(self, module):
        import torch.distributed as dist

        if not hasattr(dist.distributed_c10d, "ReconfigureOptions"):
            print("skipped: this torch has no reconfigure")
            sys.exit(SKIPPED)
        self.steps = 500
        self.environment = {"PYTHONPATH": module, "PYTHON_EXEC": sys.executable}
        text = (ROOT / "examples/elastic/elastic_ddp.py").read_text()
        longer = rf"= {self.steps}, \1, \2"
        self.text, found = re.subn(r"= \d+, (\d+), (\d+)", longer, text, count=1)
        assert found == 1

    def start(self, folder):
        (folder / "elastic_ddp.py").write_text(self.text)
        return [folder / "elastic_ddp.py"]

    def samples(self, folder, _):
        seen = set()
        for file in folder.glob("logs/*/*/*/stdout.log"):
            steps = [int(step) for step in re.findall(r"^step (\d+) of", file.read_text(), re.M)]
            assert steps == sorted(set(steps)), f"a process repeated a step: {steps}"
            seen.update(steps)
        assert seen == set(range(1, self.steps + 1)), "a step is missing"
        return sorted(seen)


class Run:
    def __init__(self, ddprun, workload, folder):
        self.workload, self.folder, self.mark = workload, folder, f"KILLS={os.urandom(8).hex()}"
        words = [ddprun, "--standalone", "--restart=failed", f"--nproc-per-node={RANKS}",
                 "--max-restarts=1000", "--rejoin-timeout=2", f"--log-dir={folder / 'logs'}"]
        words += [*os.environ.get("KILLS_OPTIONS", "").split()]
        words += [*workload.words, *workload.start(folder)]
        name, value = self.mark.split("=")
        environment = {**os.environ, "OMP_NUM_THREADS": "1", name: value, **workload.environment}
        self.errors = open(folder / "errors", "w+")
        self.process = subprocess.Popen([str(word) for word in words], env=environment, text=True,
                                        stdout=subprocess.PIPE, stderr=self.errors)
        self.output, self.step, self.kills = [], 0, 0
        self.reader = threading.Thread(target=self.read)
        self.reader.start()

    def read(self):
        for line in self.process.stdout:
            self.output.append(line)
            if step := re.match(self.workload.step_line, line):
                self.step = max(self.step, int(step[1]))

    def ranks(self):
        """The processes of the ranks that live now."""
        living = {}
        for file in self.folder.glob("logs/*/events.jsonl"):
            for line in file.read_text().splitlines(keepends=True):
                event = json.loads(line) if line.endswith("\n") else {}
                if event.get("event") == "worker_started":
                    living[event["rank"]] = event["pid"]
        return [pid for pid in living.values() if is_alive(pid)]

    def disturb(self, chance, kills):
        until = time.monotonic() + LIMIT_S
        eventually(lambda: self.step >= 2 or self.process.poll() is not None)
        # What is lost after the last step is lost with the state of all ranks that have ended.
        while self.kills < kills and self.step < 0.7 * self.workload.steps:
            if self.process.poll() is not None or time.monotonic() > until:
                break
            # In a recovery, or in a step.
            NEVER.wait(chance.uniform(0, 0.15 if chance.random() < 0.4 else 1))
            self.strike(chance)

    def strike(self, chance):
        ranks = self.ranks()
        if not ranks:
            return
        victim, other = chance.choice(ranks), chance.choice(ranks)
        how = chance.random()
        if how < PAUSE:
            kill(victim, signal.SIGSTOP)
            NEVER.wait(chance.uniform(0, 0.3))
            kill(victim, signal.SIGCONT)
            return
        if how < PAUSE + STOP_AND_KILL and victim != other:
            kill(other, signal.SIGSTOP)
            self.kills += 1
        kill(victim)
        self.kills += 1

    def finish(self):
        """The output; every process has ended."""
        code, seen = None, -1
        while code is None and len(self.output) > seen:  # a slow machine is no hang
            seen = len(self.output)
            try:
                code = self.process.wait(LIMIT_S)
            except subprocess.TimeoutExpired:
                pass
        self.reader.join(LIMIT_S if code is not None else 0.1)
        if code is not None:
            eventually(lambda: not with_mark(self.mark))
        left = with_mark(self.mark)
        text = "".join(self.output)
        if code != 0 or left:
            print(text[-3000:], (self.folder / "errors").read_text()[-5000:], sep="\n")
            print(*[describe(pid) for pid in left], sep="\n")
            keep = os.environ.get("KILLS_KEEP")  # a hang stays as it is, to be looked at
            if not keep:
                self.process.send_signal(signal.SIGTERM)
            assert code is not None, f"the run hangs, {self.folder}: {left}"
            assert code == 0, f"exit code {code}, {self.folder}"
            assert not left, left
        return text

    def weights(self, output):
        found = set(re.findall(f"^{self.workload.weights_line}", output, re.M))
        assert len(found) == 1, output[-2000:]
        return found.pop()


def train(ddprun, workload, chance, kills):
    with tempfile.TemporaryDirectory(prefix="ddprun_kills_") as folder:
        run = Run(ddprun, workload, pathlib.Path(folder))
        run.disturb(chance, kills)
        output = run.finish()
        return run.weights(output), workload.samples(run.folder, output), run.kills


def main():
    ddprun, kind, program = os.path.abspath(sys.argv[1]), sys.argv[2], os.path.abspath(sys.argv[3])
    wanted = int(sys.argv[4]) if len(sys.argv) > 4 else KILLS_OF_A_RUN
    seed = int(os.environ.get("KILLS_SEED", str(random.randrange(1 << 30))))
    chance = random.Random(seed)
    print("seed", seed, flush=True)
    workload = Trainer(program) if kind == "trainer" else Example(program)
    expected = train(ddprun, workload, chance, 0)[:2]
    print("undisturbed:", expected[0], flush=True)
    total, runs = 0, 0
    while total < wanted:
        due = min(KILLS_OF_A_RUN, wanted - total)
        weights, samples, kills = train(ddprun, workload, chance, due)
        total, runs = total + kills, runs + 1
        print(f"{total} kills in {runs} runs", flush=True)
        assert (weights, samples) == expected, (weights, expected[0])


if __name__ == "__main__":
    main()
