#!/usr/bin/env python3
"""Compares node loss and start-up of several agents on one machine with torchrun.

    bench/nodes/nodes.py --ddprun bin/ddprun --probe bin/bench_launch_probe

By default both are taken from build/release. Every row is the median of its runs; ratios are
ddprun / torchrun, which runs with the same options in the same run of this program. If torchrun
does not finish within --timeout seconds, the row says so.
"""

import argparse
import os
import pathlib
import signal
import statistics
import subprocess
import sys
import time
import uuid

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path += [str(ROOT / "bench/launch"), str(ROOT / "tests/support")]
from launch import Scratch, settle, verdict  # noqa: E402
from ports import free_port  # noqa: E402
from supervisors import agent_of  # noqa: E402

INTERVAL, ATTEMPTS = 1, 2  # whole seconds, because torchrun accepts nothing else
LIMIT_MS = INTERVAL * ATTEMPTS * 1000
POLL_SECONDS = 0.0005


def main() -> int:
    options = parse_options()
    launchers = [("ddprun", [str(options.ddprun)], options.runs)]
    if options.slow_runs and os.access(options.torchrun, os.X_OK):
        launchers.append(("torchrun", [str(options.torchrun)], options.slow_runs))
    elif options.slow_runs:
        print(f"missing peer: torchrun: {options.torchrun} cannot be executed")
    print(f"{'what, two agents unless said otherwise':<54}{'ddprun ms':>24}{'torchrun ms':>18}"
          f"{'ratio':>8}  goal")
    rows = [("SIGKILL of a worker to the last new main", 15, worker_killed),
            ("SIGKILL of an agent to the survivor's new main", 50, agent_killed),
            (f"SIGSTOP of an agent to the survivor's (limit {LIMIT_MS:.0f} ms)", LIMIT_MS + 100,
             agent_stopped),
            ("three: SIGKILL of the root to the last survivor's main", 100, root_killed),
            (f"three: SIGSTOP of the root (limit {LIMIT_MS:.0f} ms)", LIMIT_MS + 200,
             root_stopped)]
    for what, goal, measure in rows:
        show(what, goal, [measure(launcher, runs, options) for _, launcher, runs in launchers])
    for count in options.agents:
        wanted = launchers if count <= options.peer_agents else launchers[:1]
        taken = [start(launcher, runs, count, options) for _, launcher, runs in wanted]
        for which, index in (("first", 0), ("last", 1)):
            show(f"{count} agents, start to the {which} worker's main", None,
                 [[run[index] for run in runs] for runs in taken])
    _, launcher, runs = launchers[0]
    show_cost_of_secret(launcher, 3 * runs, options)
    return 0


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ddprun", default=ROOT / "build/release/bin/ddprun")
    parser.add_argument("--probe", default=ROOT / "build/release/bin/bench_launch_probe")
    parser.add_argument("--torchrun", default=ROOT / ".venv-2.15/bin/torchrun")
    parser.add_argument("--runs", type=int, default=15, help="runs of ddprun per row")
    parser.add_argument("--slow-runs", type=int, default=3, help="runs of torchrun per row")
    parser.add_argument("--timeout", type=float, default=20.0, help="seconds per step")
    parser.add_argument("--agents", type=int, nargs="*", default=[2, 8, 32])
    parser.add_argument("--peer-agents", type=int, default=8,
                        help="maximum number of torchrun agents; each needs 300 MB")
    parser.add_argument("--tiny", action="store_true", help="only test the benchmark itself")
    options = parser.parse_args()
    if options.tiny:
        options.runs, options.slow_runs, options.agents = 2, 0, [2]
    return options


class NotWithin(Exception):
    """An awaited event did not happen."""


class Nodes:
    """Agents of one run on this machine. The probe writes the start time of its main."""

    def __init__(self, launcher: list[str], nodes: str, options, restarts: int = 0, secret=None):
        self.scratch = Scratch()
        self.secret = {} if secret is None else {"DDPRUN_SECRET": secret}
        self.timeout = options.timeout
        conf = f"keep_alive_interval={INTERVAL},keep_alive_max_attempt={ATTEMPTS}"
        conf += ",last_call_timeout=10,join_timeout=120"
        self.command = [*launcher, f"--nnodes={nodes}", "--nproc-per-node=1",
                        f"--max-restarts={restarts}", "--rdzv-backend=c10d",
                        f"--rdzv-endpoint=127.0.0.1:{free_port()}", f"--rdzv-id={uuid.uuid4().hex}",
                        f"--rdzv-conf={conf}", "--local-addr=127.0.0.1", "--no-python",
                        str(options.probe), "stay"]
        self.agents: list[subprocess.Popen] = []

    def __enter__(self):
        self.scratch.__enter__()
        return self

    def __exit__(self, *_):
        for agent in self.agents:
            if agent.poll() is None:
                agent.send_signal(signal.SIGCONT)
                agent.send_signal(signal.SIGTERM)
        for agent in self.agents:
            try:
                agent.wait(timeout=5)
            except subprocess.TimeoutExpired:
                agent.kill()
                agent.wait()
        self.scratch.__exit__()

    def start(self) -> subprocess.Popen:
        agent = subprocess.Popen(self.command, env={**self.scratch.environment, **self.secret},
                                 stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                 stderr=subprocess.DEVNULL)
        self.agents.append(agent)
        return agent

    def note(self, rank: int, since: int, seconds: float) -> tuple[int, int]:
        """Start time and pid of that rank, after `since` nanoseconds. The file's name ends in the
        restart count, which under torchrun differs between the nodes of a round."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            for path in self.scratch.path.glob(f"{rank}.*"):
                text = path.read_text()
                if text.endswith("\n") and int(text.split()[0]) > since:
                    began, pid = text.split()
                    return int(began), int(pid)
            time.sleep(POLL_SECONDS)
        raise NotWithin(f"not within {seconds:.0f} s")

    def round_of(self, ranks: int, since: int = 0) -> list[tuple[int, int]]:
        return [self.note(rank, since, 120) for rank in range(ranks)]


def worker_killed(launcher, runs, options):
    taken = []
    for count in range(runs):  # the second restart of a run that fails at once waits
        with Nodes(launcher, "2", options, restarts=1) as nodes:
            nodes.start(), nodes.start()
            now = nodes.round_of(2)
            settle()
            began = time.monotonic_ns()
            os.kill(now[count % 2][1], signal.SIGKILL)
            now = nodes.round_of(2, began)
            taken.append(max(note[0] for note in now) - began)
    return taken


def agent_killed(launcher, runs, options):
    return agent_lost(launcher, runs, options, signal.SIGKILL)


def agent_stopped(launcher, runs, options):
    return agent_lost(launcher, min(runs, 5), options, signal.SIGSTOP)


def agent_lost(launcher, runs, options, how):
    """The first agent runs the coordinator; the second is lost, and another replaces it."""
    taken = []
    with Nodes(launcher, "1:2", options) as nodes:
        nodes.start()
        settle()
        for _ in range(runs):
            since = time.monotonic_ns() if taken else 0
            lost = nodes.start()
            nodes.round_of(2, since)
            settle()
            victim = agent_of(lost.pid)
            began = time.monotonic_ns()
            os.kill(victim, how)
            try:
                taken.append(nodes.note(0, began, options.timeout)[0] - began)
            except NotWithin as never:
                return str(never)
            finally:
                lost.kill()
    return taken


def root_killed(launcher, runs, options):
    return root_lost(launcher, runs, options, signal.SIGKILL)


def root_stopped(launcher, runs, options):
    return root_lost(launcher, min(runs, 5), options, signal.SIGSTOP)


def root_lost(launcher, runs, options, how):
    """The agent with the coordinator is lost; the two others have the next round without it."""
    taken = []
    for _ in range(runs):
        with Nodes(launcher, "1:3", options) as nodes:
            root = nodes.start()
            settle()
            nodes.start(), nodes.start()
            nodes.round_of(3)
            settle()
            victim = agent_of(root.pid)
            began = time.monotonic_ns()
            os.kill(victim, how)
            try:
                mains = [nodes.note(rank, began, options.timeout)[0] for rank in range(2)]
            except NotWithin as never:
                return str(never)
            finally:
                root.kill()
            taken.append(max(mains) - began)
    return taken


def start(launcher, runs, count, options, secret=None):
    """(first, last) of each run."""
    taken = []
    for _ in range(max(1, runs // 3)):
        with Nodes(launcher, str(count), options, secret=secret) as nodes:
            began = time.monotonic_ns()
            for _ in range(count):
                nodes.start()
            mains = [note[0] for note in nodes.round_of(count)]
            taken.append((min(mains) - began, max(mains) - began))
    return taken


def show_cost_of_secret(launcher, runs, options):
    """Without and with in turn, so that both see the same machine."""
    clear, sealed = [], []
    for _ in range(max(1, runs // 3)):
        clear += [run[1] / 1e6 for run in start(launcher, 1, 2, options)]
        sealed += [run[1] / 1e6 for run in start(launcher, 1, 2, options, "bench" * 8)]
    middles = statistics.median(clear), statistics.median(sealed)
    print(f"2 agents, start to the last worker's main: {middles[0]:.1f} ms; with a secret "
          f"{middles[1]:.1f} ms, ratio {middles[1] / middles[0]:.3f}")


def show(what, goal, columns):
    """A column is a list of nanoseconds, or a text that explains why there is none."""
    ours = statistics.median(columns[0]) / 1e6 if isinstance(columns[0], list) else None
    mine = columns[0] if ours is None else (f"{ours:.1f} ({min(columns[0]) / 1e6:.1f}-"
                                            f"{max(columns[0]) / 1e6:.1f})")
    theirs, ratio = "", ""
    if len(columns) > 1 and isinstance(columns[1], list):
        peer = statistics.median(columns[1]) / 1e6
        theirs, ratio = f"{peer:.1f}", f"{ours / peer:.4f}" if ours is not None else ""
    elif len(columns) > 1:
        theirs = columns[1]
    text = "" if goal is None else f"<= {goal:.0f}: {verdict(ours is not None and ours <= goal)}"
    print(f"{what:<54}{mine:>24}{theirs:>18}{ratio:>8}  {text}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
