#!/usr/bin/env python3
"""Compares ddprun-rdzvd with torch's libuv store server, row by row, in one run.

Both servers run side by side; each row is measured on both in turn, several times, and medians
are shown. "speed" is libuv's time divided by ddprun's (higher is better), "cpu" is ddprun's server
CPU time per request divided by libuv's (lower is better). Goals: speed never below 1.0, at least
2.0 on values of 1 MiB and more and on fan-out; cpu at most 0.7 per small request; memory at most
1/40.

    python3 bench/store/compare.py --build build/release --python .venv/bin/python
"""

import argparse
import json
import os
import resource
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import threading

HERE = os.path.dirname(os.path.abspath(__file__))
VERBS = ("ping", "get", "add", "set", "check", "wait")
# The torch server resolves the name of ::ffff:127.0.0.1, which no usual hosts file contains.
HOSTS = "127.0.0.1 localhost\n::1 localhost\n::ffff:127.0.0.1 localhost\n"
RESOLVER = "127.0.0.153"


def main():
    arguments = parse()
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    bench = Bench(arguments)
    print(
        f"{arguments.repeats} repetitions, medians; load average {os.getloadavg()[0]:.1f}, "
        f"{os.cpu_count()} cores; torch {bench.torch_version()}"
    )
    print(f"reverse lookups of the torch server: {bench.names.sentence}\n")
    bench.compare(rows(arguments.quick))
    bench.compare_memory()
    bench.compare_dns()
    return bench.verdict()


def parse():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--build", default="build/release", help="build folder of ddprun")
    parser.add_argument("--python", default=".venv/bin/python", help="interpreter with torch")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="smaller rows, for a quick check")
    parser.add_argument("--only", default="", help="rows whose name contains this")
    arguments = parser.parse_args()
    for program in (f"{arguments.build}/bin/ddprun-rdzvd", arguments.python):
        if not os.path.exists(program):
            print(f"skipped: {program} does not exist", file=sys.stderr)
            sys.exit(77)
    return arguments


def rows(quick):
    """(name, compared quantity, kind, arguments of store_load)"""
    count = 1000 if quick else 5000
    seconds = "0.2" if quick else "0.5"
    table = [
        (f"1 connection, {verb}", "p50", "small", ["sequence", verb, str(count)]) for verb in VERBS
    ]
    table += [
        (f"1 connection, {verb}", "p99", "small", ["sequence", verb, str(count)]) for verb in VERBS
    ]
    for size in (64, 256, 1000):
        table += [
            (f"{size} connections, {verb}", "each", "small", ["loop", verb, str(size), seconds])
            for verb in ("get", "add", "set")
        ]
    table += [
        (f"accept, VALIDATE, PING: {n}", "wall", "start", ["accept", str(n)])
        for n in ((1000,) if quick else (1000, 10000))
    ]
    table += [
        (f"barrier of {n}", "wall", "start", ["barrier", str(n)])
        for n in ((1000,) if quick else (1000, 5000))
    ]
    table += [
        (f"NCCL-style start of {n}", "wall", "start", ["nccl", str(n)]) for n in (64, 128, 1000)
    ]
    table += [(f"Gloo-style start of {n}", "wall", "start", ["gloo", str(n)]) for n in (64, 128)]
    for name, size, times, kind in (
        ("64 KiB", 65536, 400, "medium"),
        ("1 MiB", 1 << 20, 60, "large"),
        ("8 MiB", 8 << 20, 12, "large"),
    ):
        table += [
            (f"{verb.upper()} of {name}", "each", kind, [verb, str(size), str(times)])
            for verb in ("set", "get")
        ]
    table += [
        ("1 MiB to 100 waiters", "wall", "large", ["fan", str(1 << 20), "100"]),
        ("128 B to 1000 waiters", "wall", "large", ["fan", "128", "1000"]),
    ]
    return table


class Names:
    """Keeps the torch server's name lookups off the network, or makes them slow on purpose."""

    def __init__(self, folder):
        self.hosts = os.path.join(folder, "hosts")
        self.resolv = os.path.join(folder, "resolv.conf")
        with open(self.hosts, "w") as file:
            file.write(HOSTS)
        with open(self.resolv, "w") as file:
            file.write(f"nameserver {RESOLVER}\noptions timeout:5 attempts:2\n")
        test = self.private([(self.hosts, "/etc/hosts")], ["true"])
        failed = subprocess.run(test, capture_output=True, text=True)
        self.possible = failed.returncode == 0
        self.sentence = (
            "answered by a private hosts file"
            if self.possible
            else "NOT switched off, no private mounts here: " + failed.stderr.strip()
        )

    def private(self, mounts, command):
        """`command` in a private mount namespace with some files mounted over others."""
        script = "".join(f"mount --bind {over} {place} && " for over, place in mounts) + 'exec "$@"'
        return ["unshare", "--mount", "sh", "-c", script, "sh", *command]


class Server:
    """A running server: torch's or ddprun's."""

    def __init__(self, command):
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        line = self.process.stdout.readline().split()
        if not line or line[0] != "ready":
            raise RuntimeError(f"{command} did not start")
        self.port = line[1].rsplit(":", 1)[-1]
        self.pid = str(self.process.pid)  # unshare and sh were replaced by exec

    def stop(self):
        self.process.kill()
        self.process.communicate()


class Bench:
    def __init__(self, arguments):
        self.arguments = arguments
        self.folder = tempfile.mkdtemp(prefix="ddprun-bench-")
        self.names = Names(self.folder)
        self.tag = 0
        self.missed = []

    def torch_version(self):
        text = subprocess.run(
            [self.arguments.python, "-c", "import torch; print(torch.__version__)"],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        return text.strip()

    def start(self, which, slow_names=False):
        if which == "ddprun":
            return Server([f"{self.arguments.build}/bin/ddprun-rdzvd", "--port", "0"])
        command = [self.arguments.python, f"{HERE}/torch_server.py"]
        if slow_names:
            command = self.names.private([(self.names.resolv, "/etc/resolv.conf")], command)
        elif self.names.possible:
            command = self.names.private([(self.names.hosts, "/etc/hosts")], command)
        return Server(command)

    def load(self, server, scenario):
        self.tag += 1
        command = [
            f"{self.arguments.build}/bin/store_load",
            server.port,
            server.pid,
            f"t{self.tag}",
        ]
        done = subprocess.run(command + scenario, capture_output=True, text=True, timeout=300)
        if done.returncode != 0:
            raise RuntimeError(f"{' '.join(scenario)}: {done.stderr.strip()}")
        return json.loads(done.stdout)

    def compare(self, table):
        print(
            f"{'row':34} {'libuv':>12} {'ddprun':>12} {'speed':>7}   "
            f"{'cpu us/request':>17} {'cpu':>6}"
        )
        servers = {which: self.start(which) for which in ("libuv", "ddprun")}
        for name, quantity, kind, scenario in table:
            if self.arguments.only not in name:
                continue
            results = {"libuv": [], "ddprun": []}
            for turn in range(self.arguments.repeats):
                for which in sorted(servers, reverse=turn % 2 == 0):
                    results[which].append(self.load(servers[which], scenario))
            self.show(name, quantity, kind, results)
        for server in servers.values():
            server.stop()

    def show(self, name, quantity, kind, results):
        times = {
            which: statistics.median(time_of(one, quantity) for one in all_of)
            for which, all_of in results.items()
        }
        cpu = {
            which: statistics.median(1e6 * one["cpu_s"] / one["requests"] for one in all_of)
            for which, all_of in results.items()
        }
        speed = times["libuv"] / times["ddprun"]
        cost = cpu["ddprun"] / cpu["libuv"] if cpu["libuv"] else float("nan")
        goal = 2.0 if kind == "large" else 1.0
        mark = "" if speed >= goal else f"  speed goal {goal}"
        mark += "  cpu goal 0.7" if kind == "small" and cost > 0.7 else ""
        if mark:
            self.missed.append(f"{name} ({quantity}): speed {speed:.2f}, cpu {cost:.2f}")
        print(
            f"{name + ' (' + quantity + ')':34} "
            f"{unit(times['libuv']):>12} {unit(times['ddprun']):>12} "
            f"{speed:7.2f}   {cpu['libuv']:8.1f} {cpu['ddprun']:8.1f} {cost:6.2f}{mark}",
            flush=True,
        )

    def compare_memory(self):
        for connections in (0, 5000):
            name = "memory, idle" if connections == 0 else f"memory, {connections} connections"
            if self.arguments.only not in name:
                continue
            kib = {}
            for which in ("libuv", "ddprun"):
                server = self.start(which)
                kib[which] = self.load(server, ["memory", str(connections)])["resident_kib"]
                server.stop()
            ratio = kib["libuv"] / kib["ddprun"]
            mark = "" if ratio >= 40 else "  goal 40"
            if mark:
                self.missed.append(f"{name}: 1/{ratio:.0f}")
            print(
                f"{name:34} {kib['libuv'] / 1024:8.1f} MiB {kib['ddprun'] / 1024:8.1f} MiB "
                f"{'1/' + format(ratio, '.0f'):>7}{mark}",
                flush=True,
            )

    def compare_dns(self):
        name = "accept 200, 1 of 50 names lost"
        if self.arguments.only not in name:
            return
        resolver = LossyResolver.try_start() if self.names.possible else None
        if resolver is None:
            print(
                f"{name:34} skipped: needs root for a private resolv.conf and port 53 of {RESOLVER}"
            )
            return
        times = {}
        for which in ("libuv", "ddprun"):
            server = self.start(which, slow_names=True)
            times[which] = self.load(server, ["accept", "200"])["wall_s"]
            server.stop()
        resolver.stop()
        print(
            f"{name:34} {unit(times['libuv']):>12} {unit(times['ddprun']):>12} "
            f"{times['libuv'] / times['ddprun']:7.0f}   ({resolver.queries} queries)"
        )

    def verdict(self):
        shutil.rmtree(self.folder)
        print("\nall goals met" if not self.missed else "\nmissed:\n  " + "\n  ".join(self.missed))
        return 0


class LossyResolver(threading.Thread):
    """Answers "no such name", but drops every fiftieth query."""

    def __init__(self, sock):
        super().__init__(daemon=True)
        self.socket = sock
        self.queries = 0

    @staticmethod
    def try_start():
        sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        try:
            sock.bind((RESOLVER, 53))
        except OSError:
            return None
        resolver = LossyResolver(sock)
        resolver.start()
        return resolver

    def run(self):
        while True:
            query, peer = self.socket.recvfrom(4096)
            if not query:
                return
            self.queries += 1
            if self.queries % 50:
                self.socket.sendto(query[:2] + b"\x81\x83" + query[4:], peer)

    def stop(self):
        self.socket.sendto(b"", (RESOLVER, 53))
        self.join()


def time_of(result, quantity):
    if quantity == "wall":
        return result["wall_s"]
    if quantity == "each":
        return result["wall_s"] / result["requests"]
    return result[quantity + "_us"] / 1e6


def unit(seconds):
    if seconds < 1e-3:
        return f"{seconds * 1e6:.1f} us"
    return f"{seconds * 1e3:.1f} ms" if seconds < 1 else f"{seconds:.2f} s"


if __name__ == "__main__":
    sys.exit(main())
