#!/usr/bin/env python3
"""What a client of ddprun-rdzvd notices while others abuse the daemon's port.

One client writes a key every millisecond, timed from when that was due, while a peer abuses the
port: senders of one byte a second, connections that never say what they want, connections that are
opened and closed without pause, frames of junk. The control is the same client with the same abuse
of another daemon on this machine, in turn: what a row compares is the daemon, not the load of the
machine. Goals: the median at most twice that of the control, the 99th percentile at most three
times.

    python3 bench/hostile/hostile.py --build build/release
"""

import argparse
import contextlib
import json
import os
import resource
import statistics
import subprocess
import sys
import time
import urllib.request

GOALS = {"p50_us": 2.0, "p99_us": 3.0}
HUNG = 60


def rows(tiny):
    """(name, kind, connections)"""
    room = resource.getrlimit(resource.RLIMIT_NOFILE)[1] - 500
    few, many = (50, 200) if tiny else (3000, min(20_000, room))
    return [
        (f"{few} senders of a byte a second", "slow", few),
        (f"{many} half-open connections", "half-open", many),
        ("connections opened and closed", "churn", 16 if tiny else 64),
        ("connections closed for garbage", "garbage", 16 if tiny else 64),
        ("16 links that flood frames of junk", "junk", 16),
    ]


class Daemon:
    def __init__(self, build):
        self.process = subprocess.Popen(
            [f"{build}/bin/ddprun-rdzvd", "--port", "0"],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self.port = self.process.stdout.readline().rsplit(":", 1)[1].strip()

    def wait_until_alone(self):
        deadline = time.monotonic() + HUNG
        while time.monotonic() < deadline:
            page = f"http://127.0.0.1:{self.port}/status"
            with urllib.request.urlopen(page, timeout=HUNG) as answer:
                if json.load(answer)["connections"] <= 1:
                    return
        raise RuntimeError("the daemon keeps connections of an ended peer")

    def stop(self):
        self.process.kill()
        self.process.communicate()


class Attack:
    def __init__(self, build, port, kind, connections):
        self.process = subprocess.Popen(
            [f"{build}/bin/hostile_load", port, kind, str(connections)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        if self.process.stdout.readline() != "ready\n":
            raise RuntimeError(f"{kind}: the abuse did not begin")

    def stop(self):
        said, _ = self.process.communicate(timeout=HUNG)
        return json.loads(said)


def measure(options, daemon):
    done = subprocess.run(
        [f"{options.build}/bin/hostile_load", daemon.port, "client", str(options.requests)],
        capture_output=True,
        text=True,
        timeout=10 * HUNG,
    )
    if done.returncode != 0:
        raise RuntimeError("the daemon has closed the connection of the other client")
    return json.loads(done.stdout)


def compare(options, name, kind, connections):
    """One line of the table; returns the goals that were missed."""
    daemons = {"attacked": Daemon(options.build), "control": Daemon(options.build)}
    results = {which: [] for which in daemons}
    rates = []
    for repeat in range(options.repeats):
        for which in sorted(daemons, reverse=repeat % 2 == 1):
            attack = Attack(options.build, daemons[which].port, kind, connections)
            results[which].append(measure(options, daemons["attacked"]))
            amount = attack.stop()
            rates.append([amount[what] / amount["seconds"] for what in ("opened", "bytes")])
            daemons[which].wait_until_alone()
    for daemon in daemons.values():
        daemon.stop()
    line, missed = f"{name:35}", []
    for quantity, goal in GOALS.items():
        middle = {
            which: statistics.median(one[quantity] for one in all_of)
            for which, all_of in results.items()
        }
        ratio = middle["attacked"] / middle["control"]
        line += f" {middle['control']:9.1f} {middle['attacked']:9.1f} {ratio:6.2f}"
        if ratio > goal:
            missed.append(f"{name}: {quantity[:3]} x{ratio:.1f}, goal x{goal:.0f}")
    opened, moved = (statistics.median(values) for values in zip(*rates))
    print(f"{line} {opened:10.0f} {moved / 1e6:8.2f}", flush=True)
    return missed


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--build", default="build/release", help="build folder of ddprun")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--requests", type=int, default=3000, help="SETs of each measurement")
    parser.add_argument("--only", default="", help="rows whose name contains this")
    parser.add_argument("--tiny", action="store_true", help="a test of this program")
    options = parser.parse_args()
    if options.tiny:
        options.repeats, options.requests = 1, 200
    with contextlib.suppress(ValueError):  # without the privilege there are fewer connections
        resource.setrlimit(resource.RLIMIT_NOFILE, (65_536, 65_536))
    print(
        f"{options.repeats} repetitions, medians; load average {os.getloadavg()[0]:.1f}, "
        f"{os.cpu_count()} cores; microseconds of a SET, of the attacked daemon's other client\n"
    )
    print(f"{'':35} {'control':>9} {'attacked':>9} {'ratio':>6} {'control':>9} {'attacked':>9} "
          f"{'ratio':>6} {'abuse of':>10} {'the port':>8}")
    print(f"{'abuse':35} {'p50':>9} {'p50':>9} {'p50':>6} {'p99':>9} {'p99':>9} {'p99':>6} "
          f"{'opened/s':>10} {'MB/s':>8}")
    missed = []
    for row in rows(options.tiny):
        if options.only in row[0]:
            missed += compare(options, *row)
    if options.tiny:
        return 0
    print("\nall goals met" if not missed else "\nmissed:\n  " + "\n  ".join(missed))
    return 0


if __name__ == "__main__":
    sys.exit(main())
