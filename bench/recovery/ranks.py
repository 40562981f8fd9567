#!/usr/bin/env python3
"""A restart of many ranks: SIGKILL of one until all have imported torch, and their memory after
training steps, with ddprun --warm and without.

    .venv-2.15/bin/python bench/recovery/ranks.py --ddprun build/release/bin/ddprun

Each rank imports torch and takes 20 steps of a small model with an optimizer. Milliseconds after
the signal until the slowest rank has imported: median of the runs. Memory: the sum of the
proportional set sizes (/proc/PID/smaps_rollup) of all processes of the run, also the template's and
those that wait, after the steps of the last round.
"""

import argparse
import os
import pathlib
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
PRELOAD = "torch,torch._dynamo,torch.optim"
LIMIT_SECONDS = 300
IMPORTED_GOAL_MS, MEMORY_GOAL = 50, 0.5
PROGRAM = """import os, select, time
def tell(phase):
    with open(os.environ["PHASES"], "a") as file:
        file.write(f"{time.monotonic()} {os.environ['DDPRUN_ROUND']} {os.getpid()} {phase}\\n")
import torch
tell("imported")
model = torch.nn.Sequential(torch.nn.Linear(256, 256), torch.nn.ReLU(), torch.nn.Linear(256, 8))
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(20):
    model(torch.ones(32, 256)).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
tell("trained")
select.select([], [], [])
"""


class Run:
    """Of that program; use in a `with` statement."""

    def __init__(self, ddprun, ranks, words):
        self.ranks = ranks
        self.folder = tempfile.TemporaryDirectory(prefix="ddprun-ranks-")
        self.phases = pathlib.Path(self.folder.name) / "phases"
        program = pathlib.Path(self.folder.name) / "program.py"
        program.write_text(PROGRAM)
        environment = {**os.environ, "PYTHON_EXEC": sys.executable, "PHASES": str(self.phases),
                       "OMP_NUM_THREADS": "1"}
        self.process = subprocess.Popen(
            [str(ddprun), f"--nproc-per-node={ranks}", "--max-restarts=100", *words, str(program)],
            env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait()
        self.folder.cleanup()

    def wait_for(self, round_number, phase):
        """[(seconds, pid)] of all ranks."""
        deadline = time.monotonic() + LIMIT_SECONDS
        while time.monotonic() < deadline:
            text = self.phases.read_text() if self.phases.exists() else ""
            rows = [line.split() for line in text.splitlines()]
            found = [(float(row[0]), int(row[2])) for row in rows
                     if row[1:] == [str(round_number), row[2], phase]]
            if len(found) == self.ranks:
                return found
            time.sleep(0.01)
        raise TimeoutError(f"round {round_number} is not {phase} within {LIMIT_SECONDS} s")


def memory_of(pid):
    """In MiB."""
    text = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text()
    return int(re.search(r"^Pss:\s+(\d+)", text, re.M).group(1)) / 1024


def descendants_of(pid):
    parents = {}
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            stat = pathlib.Path(f"/proc/{entry}/stat").read_text()
        except OSError:
            continue
        parents.setdefault(int(stat.rpartition(")")[2].split()[1]), []).append(int(entry))
    found = [pid]
    for parent in found:
        found += parents.get(parent, [])
    return found


def measure(ddprun, ranks, words, runs, settle):
    """(milliseconds of each restart, MiB of all ranks)"""
    taken = []
    with Run(ddprun, ranks, words) as run:
        workers = run.wait_for(1, "trained")
        for number in range(2, runs + 2):
            time.sleep(settle)
            at = time.monotonic()
            os.kill(workers[0][1], signal.SIGKILL)
            taken.append(1000 * (max(run.wait_for(number, "imported"))[0] - at))
            workers = run.wait_for(number, "trained")
        time.sleep(settle)  # the next ones are forked
        return taken, sum(memory_of(pid) for pid in descendants_of(run.process.pid))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ddprun", default=ROOT / "build/release/bin/ddprun")
    parser.add_argument("--ranks", type=int, default=8)
    parser.add_argument("--warm-runs", type=int, default=5)
    parser.add_argument("--cold-runs", type=int, default=1)
    parser.add_argument("--settle", type=float, default=6.0)
    options = parser.parse_args()
    warm = ["--warm=first", "--preload", PRELOAD]
    print(f"{options.ranks} ranks{'':<8}{'imported':>10}{'least':>8}{'most':>8}{'MiB':>8}")
    results = {}
    for name, words, runs in (("ddprun --warm", warm, options.warm_runs),
                              ("ddprun", [], options.cold_runs)):
        taken, memory = measure(options.ddprun, options.ranks, words, runs, options.settle)
        results[name] = statistics.median(taken), memory
        print(f"{name:<15}{results[name][0]:>10.0f}{min(taken):>8.0f}{max(taken):>8.0f}"
              f"{memory:>8.0f}", flush=True)
    (warm_ms, warm_memory), (cold_ms, cold_memory) = results.values()
    share = warm_memory / cold_memory
    print(f"cold / warm: {cold_ms / warm_ms:.0f}; memory warm / cold: {share:.2f}")
    print(f"goals: at most {IMPORTED_GOAL_MS} ms, and {MEMORY_GOAL} of the memory: "
          f"{'met' if warm_ms <= IMPORTED_GOAL_MS else 'missed'}, "
          f"{'met' if share <= MEMORY_GOAL else 'missed'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
