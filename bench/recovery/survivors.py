#!/usr/bin/env python3
"""SIGKILL until the C++ trainer has committed its next step, with ranks that keep their process.

    .venv/bin/python bench/recovery/survivors.py --ddprun build/release/bin/ddprun \\
        --trainer build/trainer/bin/resnet18_cifar10

`rank`: one of four ranks is killed and started again (--restart=failed --recover). `spare`: a spare
takes its place (--spares=1). `node`: of two nodes with two ranks each, one is killed; the world
shrinks (--nnodes 1:2). A fresh run per sample, to its end. Milliseconds, p50 and p99 of the runs:

detect   from the signal until ddprun knows: the exit of the process, or the end of the link
agree    until the next round is decided
free     until all ranks that are kept have left the old group and taken the round
rebuild  until all ranks are connected; a rank that is started again has loaded LibTorch by then
state    until all ranks have the same state, proved by their digests: several all-reduces
step     until rank 0 has printed the next step

Steps lost: of those that rank 0 had printed before. Samples lost: a run's log of (step, count,
digest of sample ids) against that of an undisturbed run. bench/recovery/recovery.py has Python's
restart of all ranks with --warm, and torchrun's; spares.py a rank's with --spares.
"""

import argparse
import csv
import datetime
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
PHASES = ("detect", "agree", "free", "rebuild", "state", "step", "total")
STEPS, KILL_AT, LIMIT_SECONDS = 40, 3, 120
# Until the end of that phase.
GOALS_MS = {"rank": ("total", 150), "spare": ("total", 150), "node": ("state", 60)}
TRAINING = ["--generated", "--width", "8", "--amp", "off", "--limit-train", "160", "--limit-test",
            "16", "--batch-size", "16", "--epochs", "4", "--log-every", "1", "--deterministic", "4",
            "--checkpoint-every", "off", "--recover"]


class Run:
    """Of the trainer on some nodes of this machine; every line with its time."""

    def __init__(self, options, folder, nodes, ranks, more=()):
        self.folder, self.lines, self.threads = folder, [], []
        self.coordinator = None  # its node
        words = [options.ddprun, "--restart=failed", "--max-restarts=3", "--no-python",
                 f"--nproc-per-node={ranks}", *more]
        if nodes > 1:
            with socket.create_server(("127.0.0.1", 0)) as free:
                port = free.getsockname()[1]
            words += [f"--nnodes=1:{nodes}", "--rdzv-backend=c10d", "--rdzv-id=bench",
                      f"--rdzv-endpoint=127.0.0.1:{port}", "--local-addr=127.0.0.1"]
        self.nodes = []
        for node in range(nodes):
            command = [*words, f"--log-dir={folder / f'node{node}'}", f"--node-rank={node}"]
            command = command if nodes > 1 else command[:-1]
            command += [options.trainer, *TRAINING, "--model-dir", folder / "model"]
            process = subprocess.Popen(
                [str(word) for word in [*command, "--sample-log", folder / "log"]], text=True,
                env={**os.environ, "OMP_NUM_THREADS": "1"}, stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            thread = threading.Thread(target=self.read, args=[node, process])
            thread.start()
            self.nodes.append(process)
            self.threads.append(thread)

    def read(self, node, process):
        for line in process.stdout:
            if re.search(r"coordinator \S+ \(this node\)", line):
                self.coordinator = node
            self.lines.append((time.monotonic(), line))

    def when(self, pattern):
        """(seconds, match) of the first line that matches, None if there is none."""
        return next(((at, found) for at, line in list(self.lines)
                     if (found := re.match(pattern, line))), None)

    def wait_for(self, pattern):
        deadline = time.monotonic() + LIMIT_SECONDS
        while not self.when(pattern):
            if time.monotonic() > deadline:
                raise TimeoutError("".join(line for _, line in self.lines))
            time.sleep(0.001)

    def events(self, place, name, **fields):
        """Seconds of the wall clock of each, and the event."""
        found = []
        for file in self.folder.glob(f"node{place}/*/events.jsonl"):
            for line in file.read_text().splitlines():
                event = json.loads(line)
                if event["event"] == name and fields.items() <= event.items():
                    at = datetime.datetime.fromisoformat(event["time"].replace("Z", "+00:00"))
                    found.append((at.timestamp(), event))
        return found

    def finish(self, expected):
        for process, code in zip(self.nodes, expected):
            assert process.wait(LIMIT_SECONDS) == code, "".join(line for _, line in self.lines)
        for thread in self.threads:
            thread.join()

    def samples(self):
        steps = {}
        for file in self.folder.glob("log.rank*.csv"):
            for row in csv.DictReader(file.open()):
                sample = row["count"], row["digest"]
                assert steps.setdefault(int(row["step"]), sample) == sample, row
        return steps


def sample(options, what):
    """({phase: milliseconds}, steps lost, samples lost); without `what` is killed: of the steps."""
    with tempfile.TemporaryDirectory(prefix="ddprun-survivors-") as folder:
        nodes, ranks = (2, 2) if what == "node" else (1, 4)
        more = ["--spares=1"] if what == "spare" else []
        run = Run(options, pathlib.Path(folder), nodes, ranks, more)
        run.wait_for(rf"train step {KILL_AT}/")
        if what is None:
            run.finish([0])
            times = [at for at, line in run.lines if line.startswith("train step ")]
            return 1000 * (times[-1] - times[0]) / (STEPS - 1), run.samples()
        first = 0  # the node with the coordinator; another one is killed
        if what == "node":
            first = run.coordinator
        victim = (run.events(0, "worker_started", rank=3) if what != "node" else
                  run.events(1 - first, "start"))[0][1]["pid"]
        while what == "spare" and not run.events(0, "spare_ready"):
            time.sleep(0.01)
        killed, wall = time.monotonic(), time.time()
        os.kill(victim, signal.SIGKILL)
        run.wait_for(r"recovered: ")
        last = run.when(r"recovered: .* at step (\d+) .*group (\d+) ms, state (\d+) ms")
        recovered, found = last
        step, group, state = map(int, found.groups())
        run.wait_for(rf"train step {step + 1}/")
        if what != "node":
            run.finish([0])
        else:
            run.nodes[1 - first].wait()
            run.finish([0 if node == first else run.nodes[node].returncode for node in range(2)])
        lost = run.events(first, "worker_exited", signal=9) or run.events(first, "round", round=2)
        detected, decided = lost[0][0], run.events(first, "round", round=2)[0][0]
        joined = run.events(first, "worker_joined", round=2)[-1][0]
        stepped = run.when(rf"train step {step + 1}/")[0]
        printed = max(int(match[1]) for at, line in run.lines if at < recovered
                      and (match := re.match(r"train step (\d+)/", line)))
        return dict(zip(PHASES, [
            1000 * (detected - wall), 1000 * (decided - detected), 1000 * (joined - decided),
            group, state, 1000 * (stepped - recovered), 1000 * (stepped - killed)])), \
            max(0, printed - step), run.samples()


def at_share(values, share):
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ddprun", default=ROOT / "build/release/bin/ddprun", type=os.path.abspath)
    parser.add_argument("--trainer", default=ROOT / "build/trainer/bin/resnet18_cifar10",
                        type=os.path.abspath)
    parser.add_argument("--runs", type=int, default=30)
    options = parser.parse_args()
    per_step, expected = sample(options, None)
    print(f"undisturbed: {len(expected)} steps of {per_step:.0f} ms; load {os.getloadavg()[0]:.1f}")
    print(f"{'ms':<10}" + "".join(f"{phase:>9}" for phase in PHASES))
    for what, (until, goal) in GOALS_MS.items():
        taken = [sample(options, what) for _ in range(options.runs)]
        for share in (0.5, 0.99):
            row = [at_share([phases[phase] for phases, _, _ in taken], share) for phase in PHASES]
            print(f"{what} p{100 * share:<5.0f}" + "".join(f"{value:>9.0f}" for value in row))
        reached = at_share([p["total"] - (p["step"] if until == "state" else 0)
                            for p, _, _ in taken], 0.5)
        lost = sum(steps for _, steps, _ in taken)
        missing = sum(samples != expected for _, _, samples in taken)
        print(f"{what}: to the end of {until} {reached:.0f} ms, goal {goal} ms: "
              f"{'met' if reached <= goal else 'missed'}; steps lost: {lost}; runs whose samples "
              f"differ: {missing} of {len(taken)}", flush=True)
        assert lost == 0 and missing == 0
    return 0


if __name__ == "__main__":
    sys.exit(main())
