#!/usr/bin/env python3
"""SIGKILL of a worker until all ranks have finished a step: ddprun --warm, ddprun, torchrun.

    .venv-2.15/bin/python bench/recovery/recovery.py --ddprun build/release/bin/ddprun

A DDP training of two Gloo ranks (tests/warm/gloo_worker.py) under the interpreter that runs this.
Each row is the median of its runs, in milliseconds after the signal, of the slower rank: its first
line, torch imported, process group, model, first step. A launcher delays restarts that follow one
another within seconds, so each round runs --settle seconds before it is hit.

torchrun is started again for each run, and hit once: its store survives a round, and some of its
restarts never form a process group again. Such a run has no step within 60 s, and is counted.
"""

import argparse
import os
import pathlib
import signal
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
WORKER = ROOT / "tests/warm/gloo_worker.py"
PRELOAD = "torch,torch.distributed,torch.nn.parallel,torch._dynamo,torch.optim"
PHASES = ("first", "imported", "group", "model", "step 0")
LIMIT_SECONDS, TORCHRUN_LIMIT_SECONDS = 180, 60
GOAL_MS = 300


class Training:
    """A run of the worker; use in a `with` statement."""

    def __init__(self, launcher):
        self.folder = tempfile.TemporaryDirectory(prefix="ddprun-recovery-")
        self.phases = pathlib.Path(self.folder.name) / "phases"
        environment = {**os.environ, "PYTHON_EXEC": sys.executable, "PHASES": str(self.phases),
                       "OMP_NUM_THREADS": "1"}
        self.process = subprocess.Popen(
            [*launcher, "--nproc-per-node=2", "--max-restarts=100", str(WORKER)], env=environment,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pathlib.Path(str(self.phases) + ".end").touch()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.send_signal(signal.SIGTERM)
            self.process.wait()
        self.folder.cleanup()

    def rows(self):
        """(seconds, restarts, rank, pid, phase) of what the ranks have told."""
        text = self.phases.read_text() if self.phases.exists() else ""
        rows = [line.split(" ", 4) for line in text.splitlines()]
        return [(float(at), int(restarts), int(rank), int(pid), phase)
                for at, restarts, rank, pid, phase in rows]

    def wait_after(self, at, limit=LIMIT_SECONDS):
        """Of the round in which both ranks finished their first step after `at`: all rows."""
        deadline = time.monotonic() + limit
        while time.monotonic() < deadline:
            rows = [row for row in self.rows() if row[0] > at]
            done = [row for row in rows if row[4].startswith(PHASES[-1])]
            for restarts in {row[1] for row in done}:
                if {row[2] for row in done if row[1] == restarts} == {0, 1}:
                    return [row for row in rows if row[1] == restarts]
            time.sleep(0.005)
        raise TimeoutError(f"no step within {limit} s")

    def hit(self, rows, limit=LIMIT_SECONDS):
        """Kills rank 1 and returns the milliseconds of each phase of the next round."""
        at = time.monotonic()
        os.kill(next(row[3] for row in rows if row[2] == 1), signal.SIGKILL)
        rows = self.wait_after(at, limit)
        return rows, [1000 * (max(row[0] for row in rows if row[4].startswith(phase)) - at)
                      for phase in PHASES]


def measure(launcher, runs, settle):
    with Training(launcher) as training:
        rows = training.wait_after(0)
        taken = []
        for _ in range(runs):
            time.sleep(settle)
            rows, phases = training.hit(rows)
            taken.append(phases)
    return taken


def measure_firsts(launcher, runs, settle):
    """(phases of the runs that came back, how many did not)"""
    taken, stuck = [], 0
    for _ in range(runs):
        with Training(launcher) as training:
            rows = training.wait_after(0)
            time.sleep(settle)
            try:
                taken.append(training.hit(rows, TORCHRUN_LIMIT_SECONDS)[1])
            except TimeoutError:
                stuck += 1
    return taken, stuck


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ddprun", default=ROOT / "build/release/bin/ddprun")
    parser.add_argument("--warm-runs", type=int, default=9)
    parser.add_argument("--slow-runs", type=int, default=3)
    parser.add_argument("--settle", type=float, default=6.0)
    parser.add_argument("--no-torchrun", action="store_true")
    options = parser.parse_args()
    ddprun = [str(options.ddprun)]
    warm = [*ddprun, "--warm=first", "--preload", PRELOAD]
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    launchers = [("ddprun --warm", warm, options.warm_runs), ("ddprun", ddprun, options.slow_runs)]
    if not options.no_torchrun:
        launchers.append(("torchrun", torchrun, options.slow_runs))
    print(f"{'ms after SIGKILL':<16}" + "".join(f"{phase:>10}" for phase in PHASES)
          + f"{'least':>10}{'most':>8}{'/ warm':>8}")
    reference = None  # of ddprun --warm
    for name, launcher, runs in launchers:
        stuck = 0
        if launcher is torchrun:
            taken, stuck = measure_firsts(launcher, runs, options.settle)
        else:
            taken = measure(launcher, runs, options.settle)
        if stuck > 0:
            print(f"{name}: {stuck} of {runs} restarts took no step within "
                  f"{TORCHRUN_LIMIT_SECONDS} s", flush=True)
        if not taken:
            continue
        medians = [statistics.median(column) for column in zip(*taken)]
        reference = reference or medians[-1]
        steps = [phases[-1] for phases in taken]
        print(f"{name:<16}" + "".join(f"{median:>10.0f}" for median in medians)
              + f"{min(steps):>10.0f}{max(steps):>8.0f}{medians[-1] / reference:>8.1f}", flush=True)
    met = reference is not None and reference <= GOAL_MS
    print(f"goal: ddprun --warm at most {GOAL_MS} ms: {'met' if met else 'missed'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
