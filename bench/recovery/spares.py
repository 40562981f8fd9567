#!/usr/bin/env python3
"""SIGKILL of a rank until all ranks, one of them a spare, have finished an all-reduce together.

    .venv-2.15/bin/python bench/recovery/spares.py --ddprun build/release/bin/ddprun

Gloo ranks that do nothing but an all-reduce every few milliseconds, with torch.distributed's
reconfigure (torch 2.15 or later), under --restart=failed --spares. Times are in milliseconds after
the signal, of the slowest rank: the exit is known (detect), the next round is decided, all ranks
have taken it (joined), they are connected (group), they have reduced. The second row is what a
start of the lost rank costs. ddprun delays restarts of rounds that fail within 5 s: each round runs
--settle seconds before it is hit.
"""

import argparse
import contextlib
import datetime
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
PHASES = ("detect", "decided", "joined", "group", "reduced")
LIMIT_SECONDS = 120
GOALS_MS = (40, 150)  # p50, p99


def work(path):
    """A rank, or a spare."""
    import ddprun
    import torch
    import torch.distributed as dist
    torch.set_num_threads(1)
    phases = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def tell(world, phase):
        row = f"{time.time()} {world.round} {world.rank} {os.getpid()} {phase}\n"
        os.write(phases, row.encode())

    ddprun.survive()
    while world := ddprun.next_round():
        tell(world, "joined")
        try:
            ddprun.reconfigure(world)
            tell(world, "group")
            reduced = False
            while not ddprun.round_pending():
                numbers = torch.tensor([1.0, float(os.path.exists(path + ".end"))])
                dist.all_reduce(numbers)
                if not reduced and numbers[0] == world.world_size:
                    reduced = True
                    tell(world, "reduced")
                if numbers[1] > 0:
                    return
                time.sleep(0.005)
        except RuntimeError:
            ddprun.abandon_sockets()


class Run:
    """Ranks that reduce; use in a `with` statement."""

    def __init__(self, ddprun, ranks, spares):
        self.ranks, self.spares = ranks, spares
        self.folder = tempfile.TemporaryDirectory(prefix="ddprun-spares-")
        self.path = pathlib.Path(self.folder.name) / "phases"
        python = pathlib.Path(ddprun).resolve().parents[1] / "python"
        environment = {**os.environ, "PYTHON_EXEC": sys.executable, "OMP_NUM_THREADS": "1"}
        if python.is_dir():  # of a build; an installed ddprun has it in lib
            environment["PYTHONPATH"] = str(python)
        self.process = subprocess.Popen(
            [str(ddprun), "--restart=failed", f"--spares={spares}", f"--nproc-per-node={ranks}",
             "--max-restarts=100000", f"--log-dir={self.folder.name}/logs", __file__, "--work",
             str(self.path)],
            env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pathlib.Path(str(self.path) + ".end").touch()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(20)
        self.process.terminate()
        self.process.wait()
        self.folder.cleanup()

    def rows(self, number):
        """(seconds, rank, pid, phase) of what the ranks have told of a round."""
        text = self.path.read_text() if self.path.exists() else ""
        rows = [line.split() for line in text.splitlines()]
        return [(float(at), int(rank), int(pid), phase)
                for at, its, rank, pid, phase in rows if int(its) == number]

    def events(self, *names):
        found = []
        for path in pathlib.Path(self.folder.name).glob("logs/*/events.jsonl"):
            for line in path.read_text().splitlines():
                with contextlib.suppress(ValueError):
                    event = json.loads(line)
                    if event["event"] in names:
                        found.append(event)
        return found

    def wait(self, condition, what):
        deadline = time.monotonic() + LIMIT_SECONDS
        while not condition():
            if time.monotonic() > deadline or self.process.poll() is not None:
                raise TimeoutError(f"{what}: not within {LIMIT_SECONDS} s")
            time.sleep(0.01)

    def reach(self, number):
        def reduced():
            return len([row for row in self.rows(number) if row[3] == "reduced"]) == self.ranks
        self.wait(reduced, f"round {number}")
        return self.rows(number)

    def wait_for_spares(self):
        def are_there():
            gone = len(self.events("spare_used", "spare_ended"))
            return len(self.events("spare_ready")) - gone >= self.spares
        self.wait(are_there, "spares")

    def hit(self, number):
        """Kills a rank of the round; the milliseconds of each phase of the next one."""
        victim = next(pid for _, rank, pid, _ in self.rows(number) if rank == number % self.ranks)
        at = time.time()
        os.kill(victim, signal.SIGKILL)
        rows = self.reach(number + 1)
        used = len([event for event in self.events("spare_used") if event["round"] == number + 1])
        if self.spares > 0 and used != 1:
            raise AssertionError(f"round {number + 1} used {used} spares")
        exits = [one for one in self.events("worker_exited") if one["pid"] == victim]
        decided = [one for one in self.events("round") if one["round"] == number + 1]
        ends = [seconds_of(exits[0]), seconds_of(decided[0])]
        ends += [max(row[0] for row in rows if row[3] == phase) for phase in PHASES[2:]]
        return [1000 * (end - at) for end in ends]


def seconds_of(event):
    return datetime.datetime.fromisoformat(event["time"].replace("Z", "+00:00")).timestamp()


def measure(ddprun, ranks, spares, hits, settle):
    with Run(ddprun, ranks, spares) as run:
        taken = []
        for number in range(1, hits + 1):
            run.reach(number)
            run.wait_for_spares()
            time.sleep(settle)
            taken.append(run.hit(number))
        return taken


def share(values, part):
    values = sorted(values)
    return values[min(len(values) - 1, int(len(values) * part))]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ddprun", default=ROOT / "build/release/bin/ddprun")
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--hits", type=int, default=50)
    parser.add_argument("--cold-hits", type=int, default=5)
    parser.add_argument("--settle", type=float, default=5.5)
    parser.add_argument("--work", metavar="FILE", help="be a rank")
    options = parser.parse_args()
    if options.work:
        work(options.work)
        return 0
    print(f"{'ms after SIGKILL':<18}" + "".join(f"{phase:>9}" for phase in PHASES)
          + "   (p50 / p99 of the last)")
    met = False
    for name, spares, hits in (("a spare", 1, options.hits), ("a start", 0, options.cold_hits)):
        if hits == 0:
            continue
        taken = measure(options.ddprun, options.ranks, spares, hits, options.settle)
        halves = [share(column, 0.5) for column in zip(*taken)]
        last = [row[-1] for row in taken]
        print(f"{name:<18}" + "".join(f"{half:>9.1f}" for half in halves)
              + f"   {share(last, 0.5):.1f} / {share(last, 0.99):.1f} of {len(last)}", flush=True)
        met = met or (spares > 0 and share(last, 0.5) <= GOALS_MS[0]
                      and share(last, 0.99) <= GOALS_MS[1])
    print(f"goal: at most {GOALS_MS[0]} ms (p50) and {GOALS_MS[1]} ms (p99): "
          + ("met" if met else "missed"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
