#!/usr/bin/env python3
"""Measures the cost of joining, node loss, restart and end in a coordinator with N agents.

    bench/rendezvous/agents.py --rdzvd bin/ddprun-rdzvd --load bin/bench_agents [--secret]

Every agent uses the real client code on a real loopback connection, but has no worker processes.
All agents are in one process, the coordinator in another, so on a machine with two processors each
has one. Columns, per run:

  wall        from the first event (connect, kill, failure, success) until every agent has its round
              or its verdict; per agent in brackets
  coordinator CPU time of ddprun-rdzvd per agent, answers to that round included
  load        CPU time of the process with the agents per agent: the wall clock pays for it too
  up, down    bytes of messages per agent, from and to it
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

PHASES = {
    "join": "connect -> first round",
    "loss": "one killed -> next round",
    "failure": "worker fails -> next round",
    "end": "all succeed -> verdict",
    "beat": "one keep-alive each, answered",
}
JOIN_GOAL_S = 1.0
SECRET = "bench" * 8
# Ten thousand agents exceed the processor's caches; a cost proportional to N would grow 100-fold.
FLAT_GOAL = 2.0
FLAT_FROM = 100


def main() -> int:
    options = parse_options()
    results = {}
    for agents in options.agents:
        results[agents] = median([measure(options, agents, "time") for _ in range(options.runs)])
        counted = measure(options, agents, "bytes")
        for phase in PHASES:
            for key in ["bytes_up", "bytes_down"]:
                results[agents][phase][key] = counted[phase][key]
        print_rows(agents, results[agents])
    print_goals(results)
    return 0


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    root = pathlib.Path(__file__).resolve().parents[2]
    parser.add_argument("--rdzvd", default=root / "build/release/bin/ddprun-rdzvd")
    parser.add_argument("--load", default=root / "build/release/bin/bench_agents")
    parser.add_argument("--agents", type=int, nargs="+", default=[100, 1_000, 10_000])
    parser.add_argument("--runs", type=int, default=5, help="runs of each; the median is reported")
    parser.add_argument("--secret", action="store_true", help="links of agents are sealed (TLS)")
    return parser.parse_args()


def measure(options: argparse.Namespace, agents: int, mode: str) -> dict:
    """One run against a new coordinator, so that its memory starts at zero."""
    command = [options.rdzvd, "--bind", "127.0.0.1", "--port", "0"]
    environment = dict(os.environ)
    environment.pop("DDPRUN_SECRET", None)
    file = tempfile.NamedTemporaryFile("w")  # only its owner may read it
    if options.secret:
        environment["DDPRUN_SECRET"] = SECRET
        file.write(SECRET)
        file.flush()
        command.append(f"--secret-file={file.name}")
    coordinator = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    try:
        ready = coordinator.stdout.readline()
        if not ready.startswith("ready "):
            raise SystemExit(f"{options.rdzvd} did not get ready: {ready!r}")
        port = ready.strip().rsplit(":", 1)[1]
        load = [options.load, port, str(coordinator.pid), "bench", str(agents), mode]
        done = subprocess.run(load, env=environment, stdout=subprocess.PIPE, text=True, timeout=300)
        if done.returncode != 0:
            raise SystemExit(f"bench_agents with {agents} agents exited with {done.returncode}")
        return json.loads(done.stdout)
    finally:
        coordinator.terminate()
        coordinator.wait(timeout=30)
        file.close()


def median(runs: list) -> dict:
    """Field by field."""
    result = {}
    for key, value in runs[0].items():
        values = [run[key] for run in runs]
        result[key] = median(values) if isinstance(value, dict) else statistics.median(values)
    return result


def print_rows(agents: int, result: dict) -> None:
    print(f"{agents} agents{'wall':>37}{'coordinator':>22}{'load':>12}{'up':>8}{'down':>8}")
    for phase, title in PHASES.items():
        row = result[phase]
        print(
            f"  {title:<32}{row['wall_s'] * 1e3:>8.1f} ms ({per(row['wall_s'], agents):5.1f} us)"
            f"{per(row['server_cpu_s'], agents):>11.1f} us{per(row['own_cpu_s'], agents):>9.1f} us"
            f"{row['bytes_up'] / agents:>6.0f} B{row['bytes_down'] / agents:>6.0f} B"
        )
    kib = result["private_kib"]
    print(f"  memory of the coordinator: {kib / 1024:.1f} MiB, {kib / agents:.2f} KiB per agent\n")


def per(seconds: float, agents: int) -> float:
    return seconds / agents * 1e6


def print_goals(results: dict) -> None:
    most = max(results)
    join = results[most]["join"]["wall_s"]
    if most >= 10_000:
        verdict("all of 10000 agents have their round in 1 s", join <= JOIN_GOAL_S, f"{join:.3f} s")
    if FLAT_FROM not in results or most == FLAT_FROM:
        return
    for phase in ["join", "loss", "failure", "end"]:
        for what in ["wall_s", "server_cpu_s"]:
            few = per(results[FLAT_FROM][phase][what], FLAT_FROM)
            many = per(results[most][phase][what], most)
            verdict(
                f"{phase}: {'wall time' if what == 'wall_s' else 'coordinator CPU'} per agent flat "
                f"from {FLAT_FROM} to {most} (at most x{FLAT_GOAL:.0f})",
                many <= few * FLAT_GOAL,
                f"{few:.1f} -> {many:.1f} us, x{many / few:.1f}",
            )


def verdict(goal: str, reached: bool, value: str) -> None:
    print(f"{'reached    ' if reached else 'NOT REACHED'}  {goal}: {value}")


if __name__ == "__main__":
    sys.exit(main())
