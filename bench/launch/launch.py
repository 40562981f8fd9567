#!/usr/bin/env python3
"""Compares launch, restart, memory and idle cost of ddprun with torchrun and mpirun, in one run.
Rows of ddprun alone: what it answers without a start.

    bench/launch/launch.py --ddprun bin/ddprun --probe bin/bench_launch_probe

By default both are taken from build/release. Every row is the median of its runs; ratios are
ddprun / peer. A missing peer is named and skipped.
"""

import argparse
import os
import pathlib
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time


def main() -> int:
    options = parse_options()
    bench = Bench(options)
    for name, reason in bench.missing.items():
        print(f"missing peer: {name}: {reason}")
    print(f"{'what':<44}{'ddprun':>22}  {'peer':<9}{'its median':>12}{'ratio':>9}  goal")
    for workers in options.workers:
        bench.launch(workers)
    bench.exec_to_main()
    bench.restart()
    bench.answers()
    bench.idle()
    if bench.failures:
        print("\n".join(["wrong results:"] + bench.failures))
        return 1
    return 0


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    root = pathlib.Path(__file__).resolve().parents[2]
    parser.add_argument("--ddprun", default=root / "build/release/bin/ddprun")
    parser.add_argument("--probe", default=root / "build/release/bin/bench_launch_probe")
    parser.add_argument("--torchrun", default=root / ".venv-2.15/bin/torchrun")
    parser.add_argument("--mpirun", default=shutil.which("mpirun"))
    parser.add_argument("--workers", type=int, nargs="*", default=[2, 8, 32])
    parser.add_argument("--runs", type=int, default=15, help="runs of ddprun and mpirun per row")
    parser.add_argument("--slow-runs", type=int, default=5, help="runs of torchrun per row")
    parser.add_argument("--answers", type=int, default=200, help="runs of --help and its like")
    parser.add_argument("--idle-seconds", type=float, default=20.0)
    parser.add_argument("--tiny", action="store_true", help="only test the benchmark itself")
    options = parser.parse_args()
    if options.tiny:
        options.workers, options.runs, options.slow_runs = [2], 2, 0
        options.idle_seconds, options.answers = 1.0, 2
    return options


class Bench:
    def __init__(self, options: argparse.Namespace):
        self.options = options
        self.missing = {}
        self.failures = []
        self.ddprun = [str(options.ddprun), "--standalone"]
        self.torchrun = self.find("torchrun", options.torchrun, ["--standalone"])
        self.mpirun = self.find("mpirun", options.mpirun,
                                ["--allow-run-as-root", "--oversubscribe"])
        if options.slow_runs == 0:
            self.torchrun = None

    def find(self, name, path, arguments):
        if path and os.access(path, os.X_OK):
            return [str(path), *arguments]
        self.missing[name] = f"{path or 'not on PATH'} cannot be executed"
        return None

    def elastic(self, launcher, workers, *command, restarts=0):
        return [*launcher, f"--nproc-per-node={workers}", f"--max-restarts={restarts}",
                "--no-python", *map(str, command)]

    def mpi(self, workers, *command):
        return [*self.mpirun, "-np", str(workers), *map(str, command)]

    # The whole command: /bin/true on every rank.
    def launch(self, workers):
        def seconds_of(command, runs):
            return [self.timed(command) for _ in range(runs)]

        ours = seconds_of(self.elastic(self.ddprun, workers, "/bin/true"), self.options.runs)
        peers = []
        if self.torchrun:
            command = self.elastic(self.torchrun, workers, "/bin/true")
            goal = 1 / 50 if workers == 2 else None
            peers.append(("torchrun", seconds_of(command, self.options.slow_runs), goal))
        if self.mpirun and workers <= 24:
            command = self.mpi(workers, "/bin/true")
            goal = 1 / 3 if workers == 2 else None
            peers.append(("mpirun", seconds_of(command, self.options.runs), goal))
        self.compare(f"launch /bin/true x{workers}, whole command, ms", 1e3, ours, peers)

    def timed(self, command):
        began = time.monotonic()
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=60)
        took = time.monotonic() - began
        if done.returncode != 0:
            self.failures.append(f"{command}: exit {done.returncode}: {done.stderr[-500:]}")
        return took

    # From the exec of the launcher to the first instruction of the last worker's main.
    def exec_to_main(self):
        def seconds_of(command_of, runs):
            return [self.first_main(command_of) for _ in range(runs)]

        probe = self.options.probe
        ours = seconds_of(self.elastic(self.ddprun, 2, probe), self.options.runs)
        peers = []
        if self.torchrun:
            command = self.elastic(self.torchrun, 2, probe)
            peers.append(("torchrun", seconds_of(command, self.options.slow_runs), None))
        if self.mpirun:
            peers.append(("mpirun", seconds_of(self.mpi(2, probe), self.options.runs), None))
        self.compare("exec to the last worker's main x2, ms", 1e3, ours, peers, goal=10)

    def first_main(self, command):
        with Scratch() as scratch:
            began = time.monotonic_ns()
            subprocess.run(command, env=scratch.environment, stdin=subprocess.DEVNULL,
                           capture_output=True, timeout=60, check=True)
            return max(scratch.note(rank, 0)[0] - began for rank in (0, 1)) / 1e9

    # SIGKILL of one of two workers to the main of the last replacement.
    def restart(self):
        ours = self.restarts_of(self.ddprun, self.options.runs)
        peers = []
        if self.torchrun:
            seconds = self.restarts_of(self.torchrun, self.options.slow_runs)
            peers.append(("torchrun", seconds, None))
        self.compare("SIGKILL of a worker to the last new main, ms", 1e3, ours, peers, goal=10)

    def restarts_of(self, launcher, runs):
        return [self.restart_of(launcher, run % 2) for run in range(runs)]

    # One restart a run: the second of a run that fails at once waits.
    def restart_of(self, launcher, rank):
        with Scratch() as scratch:
            command = self.elastic(launcher, 2, self.options.probe, "stay", restarts=1)
            with Running(command, scratch.environment):
                victims = [scratch.note(every, 0) for every in (0, 1)]
                settle()
                began = time.monotonic_ns()
                os.kill(victims[rank][1], signal.SIGKILL)
                new = [scratch.note(every, 1) for every in (0, 1)]
                return (max(note[0] for note in new) - began) / 1e9

    # Answers without a start.
    def answers(self):
        planned = ["--dry-run", "--nproc-per-node=8", "--no-python", "/bin/true"]
        for question in (["--help"], ["--version"], planned):
            command = [*self.ddprun, *question]
            seconds = [self.timed(command) for _ in range(self.options.answers)]
            self.compare(f"{question[0]}, whole command, ms", 1e3, seconds, [], goal=5)

    # Eight idle workers.
    def idle(self):
        ours = self.idle_of(self.ddprun)
        peers = [("torchrun", self.idle_of(self.torchrun))] if self.torchrun else []
        self.compare("private memory, 8 idle workers, MB", 1, ours[0],
                     [(name, figures[0], None) for name, figures in peers], goal=8)
        self.compare("wake-ups per second, 8 idle workers", 1, ours[1],
                     [(name, figures[1], None) for name, figures in peers], goal=2)

    def idle_of(self, launcher):
        with Scratch() as scratch:
            command = self.elastic(launcher, 8, self.options.probe, "stay")
            with Running(command, scratch.environment) as pid:
                workers = {scratch.note(rank, 0)[1] for rank in range(8)}
                settle()
                ours = descendants(pid) - workers
                began = time.monotonic()
                before = sum(map(context_switches, ours))
                time.sleep(self.options.idle_seconds)
                woken = sum(map(context_switches, ours)) - before
                rate = woken / (time.monotonic() - began)
                return [sum(map(private_bytes, ours)) / 1e6], [rate]

    def compare(self, what, scale, ours, peers, goal=None):
        mine = statistics.median(ours) * scale
        spread = f"{mine:.2f} ({min(ours) * scale:.2f}-{max(ours) * scale:.2f})"
        text = f"<= {goal}: {verdict(mine <= goal)}" if goal is not None else ""
        print(f"{what:<44}{spread:>22}  {'':<30}  {text}", flush=True)
        for name, figures, ratio_goal in peers:
            theirs = statistics.median(figures) * scale
            ratio = mine / theirs if theirs else float("inf")
            text = f"<= {ratio_goal:.3f}: {verdict(ratio <= ratio_goal)}" if ratio_goal else ""
            print(f"{'':<66}  {name:<9}{theirs:>12.2f}{ratio:>9.4f}  {text}", flush=True)


class Scratch:
    """A directory for the probes' timestamps."""

    def __enter__(self):
        self.path = pathlib.Path(tempfile.mkdtemp(prefix="ddprun_bench_"))
        self.environment = dict(os.environ, BENCH_DIR=str(self.path), LOGLEVEL="ERROR")
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.path, ignore_errors=True)

    def note(self, rank, restart_count):
        """(CLOCK_MONOTONIC nanoseconds of main, pid)"""
        path = self.path / f"{rank}.{restart_count}"
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            if path.exists() and (text := path.read_text()).endswith("\n"):
                began, pid = text.split()
                return int(began), int(pid)
            time.sleep(0.001)
        raise TimeoutError(f"no note of rank {rank}, restart {restart_count}")


class Running:
    """A launcher in the background, stopped with SIGTERM."""

    def __init__(self, command, environment):
        self.process = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def __enter__(self):
        return self.process.pid

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(timeout=60)


def settle():
    time.sleep(0.2)


def descendants(pid):
    """The process and its descendants."""
    parents = {}
    for entry in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
            parents[int(entry.name)] = int(fields[1])
        except OSError:
            continue
    found = {pid}
    while more := {child for child, parent in parents.items() if parent in found} - found:
        found |= more
    return found


def private_bytes(pid):
    total = 0
    for line in pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith(("Private_Clean:", "Private_Dirty:")):
            total += int(line.split()[1]) * 1024
    return total


def context_switches(pid):
    total = 0
    for status in pathlib.Path(f"/proc/{pid}/task").glob("*/status"):
        for line in status.read_text().splitlines():
            if line.startswith(("voluntary_ctxt_switches:", "nonvoluntary_ctxt_switches:")):
                total += int(line.split()[1])
    return total


def verdict(reached):
    return "reached" if reached else "MISSED"


if __name__ == "__main__":
    sys.exit(main())
