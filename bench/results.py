#!/usr/bin/env python3
"""Runs the benchmarks and writes their output, date, machine and command to bench/RESULTS.md.

    cmake --preset trainer && cmake --build build/trainer && bench/results.py

On two quiet processors it takes about 12 minutes. The exit code is 1 if a benchmark failed; its
section shows how far it came and its exit code. --only keeps the sections of the others.
"""

import argparse
import datetime
import os
import pathlib
import platform
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
RESULTS = ROOT / "bench" / "RESULTS.md"
LIMIT_S = 3600
HEAD = """# Measured ratios

Written by `bench/results.py`: the output of each benchmark, with the peer in the same run. Compare
ratios; milliseconds are meaningful only on a quiet machine. `--help` of a benchmark explains it.
"""


def benchmarks(build, python):
    """(title, command) in the order of the page."""
    launch = ["--ddprun", f"{build}/bin/ddprun", "--probe", f"{build}/bin/bench_launch_probe"]
    logs = ["--ddprun", f"{build}/bin/ddprun", "--writer", f"{build}/bin/bench_logs_writer"]
    rdzvd = ["--rdzvd", f"{build}/bin/ddprun-rdzvd", "--load", f"{build}/bin/bench_agents"]
    store = ["--build", build, "--python", python]
    return [
        ("Launch, restart, memory, idle cost", ["python3", "bench/launch/launch.py", *launch]),
        ("Output of workers", ["python3", "bench/logs/logs.py", *logs]),
        (
            "What the report says",
            ["python3", "tests/failures/run.py", "--ddprun", f"{build}/bin/ddprun", "--inject",
             f"{build}/bin/inject", "--peer", ".venv/bin/torchrun", "--quiet"],
        ),
        (
            "Reports of workers",
            [f"{build}/bin/ddprun", "--standalone", "--no-python", f"{build}/bin/bench_worker_api"],
        ),
        ("Several nodes", ["python3", "bench/nodes/nodes.py", *launch]),
        ("10,000 agents", ["python3", "bench/rendezvous/agents.py", *rdzvd]),
        ("Abuse of the port", ["python3", "bench/hostile/hostile.py", "--build", build]),
        ("Effective training time", [f"{build}/bin/bench_goodput", "--goal", "0.1"]),
        ("Store", ["python3", "bench/store/compare.py", *store]),
        (
            "Training step",
            [python, "bench/trainer/compare.py", "--trainer", f"{build}/bin/resnet18_cifar10"],
        ),
    ]


def first_match(path, pattern):
    found = re.search(pattern, pathlib.Path(path).read_text(), re.MULTILINE)
    return found.group(1).strip() if found else "unknown"


def machine():
    model = first_match("/proc/cpuinfo", r"^model name\s*: (.*)$")
    memory = int(first_match("/proc/meminfo", r"^MemTotal:\s+(\d+)")) / 2**20
    load = " ".join(f"{value:.1f}" for value in os.getloadavg())
    return (
        f"{os.cpu_count()} x {model}, {memory:.0f} GB, Linux {platform.release()}, "
        f"load average before the run {load}"
    )


def revision():
    command = ["git", "-C", str(ROOT), "describe", "--always", "--dirty"]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    return result.stdout.strip() or "unknown"


def old_sections():
    if not RESULTS.exists():
        return {}
    parts = re.split(r"^## (.*)$", RESULTS.read_text(), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2]))


def section(command):
    """The page's text about one run, and whether it succeeded."""
    facts = f"{datetime.date.today()}, revision {revision()}, {machine()}"
    result = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=LIMIT_S, check=False
    )
    shown = f"$ {' '.join(command)}\n{result.stdout.rstrip()}"
    if result.returncode != 0:
        print(result.stderr[-2000:], file=sys.stderr)
        shown += f"\nexit code {result.returncode}"
    return f"{facts}\n\n```\n{shown}\n```", result.returncode == 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default="build/trainer", help="folder of a release build")
    parser.add_argument("--python", default=".venv/bin/python", help="interpreter with torch")
    parser.add_argument("--only", default="", help="benchmarks whose title contains this")
    options = parser.parse_args()
    sections = old_sections()
    failed = False
    wanted = benchmarks(options.build, options.python)
    for title, command in wanted:
        if options.only.lower() not in title.lower():
            continue
        print(f"{title}: {' '.join(command)}", flush=True)
        sections[title], succeeded = section(command)
        failed = failed or not succeeded
    pages = [f"## {title}\n\n{sections[title].strip()}" for title, _ in wanted if title in sections]
    if pages:
        RESULTS.write_text("\n\n".join([HEAD.rstrip(), *pages]) + "\n")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
