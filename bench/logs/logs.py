#!/usr/bin/env python3
"""Compares what the output of workers costs in ddprun and in torchrun, in one run.

    bench/logs/logs.py --ddprun bin/ddprun --writer bin/bench_logs_writer

Lines of 80 bytes, --tee 3: into files in /dev/shm, and with a prefix to a console that is
/dev/null. Not redirected: into a file in /dev/shm, or a terminal that is read at once. There
torchrun's workers write themselves, and the time is that of the worker's writes. Processor time is
that of the launcher: of all its processes, without the workers, and without what a run costs that
writes nothing. "MB per processor second" is what one core can pass on. Each row is the median of
its runs; what arrives is compared with what was written.
"""

import argparse
import os
import pathlib
import pty
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time

LINE_BYTES = 80


def main() -> int:
    options = parse_options()
    bench = Bench(options)
    print(f"{'what':<54}{'ddprun':>12}{'torchrun':>12}{'ratio':>8}  goal")
    bench.throughput("--tee 3, one rank: MB per processor second", ["--tee=3"], 500)
    bench.throughput("the same, wall clock: MB/s", ["--tee=3"], None, clock="wall")
    bench.throughput("--log-max 64M --redirects 3 (ddprun's own)",
                     ["--redirects=3", "--log-max=64M"], None, peer=False)
    bench.console("not redirected, both streams one file: MB/s", "file")
    bench.console("the same on a terminal", "terminal")
    bench.chatty()
    if bench.failures:
        print("\n".join(["wrong results:"] + bench.failures))
        return 1
    return 0


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    root = pathlib.Path(__file__).resolve().parents[2]
    parser.add_argument("--ddprun", default=root / "build/release/bin/ddprun")
    parser.add_argument("--writer", default=root / "build/release/bin/bench_logs_writer")
    parser.add_argument("--torchrun", default=root / ".venv-2.15/bin/torchrun")
    parser.add_argument("--lines", type=int, default=8_000_000, help="of one rank, for throughput")
    parser.add_argument("--slow-lines", type=int, default=800_000, help="the same for torchrun")
    parser.add_argument("--rate", type=int, default=1000, help="lines per second of a chatty rank")
    parser.add_argument("--seconds", type=int, default=5, help="that these write")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--tiny", action="store_true", help="only test the benchmark itself")
    options = parser.parse_args()
    if options.tiny:
        options.lines, options.seconds, options.runs, options.torchrun = 20_000, 1, 1, None
    return options


class Console:
    """Where a launcher's stdout and stderr go; `shown`: how often the letter of the lines came."""

    def __init__(self, kind, folder):
        self.errors = pathlib.Path(folder, "errors")
        self.err = os.open(self.errors, os.O_RDWR | os.O_CREAT)
        self.out, self.shown, self.reader = self.err, 0, None
        if kind == "null":
            self.out = os.open("/dev/null", os.O_WRONLY)
        elif kind == "terminal":
            self.window, self.out = pty.openpty()
            self.err = self.out
            self.reader = threading.Thread(target=self.read)

    def __enter__(self):
        if self.reader:
            self.reader.start()
        return self

    def __exit__(self, *_):
        for stream in {self.out, self.err}:
            os.close(stream)
        if self.reader:
            self.reader.join()
            os.close(self.window)
        else:
            self.shown = self.errors.read_bytes().count(b"x")

    def read(self):
        while True:
            try:
                self.shown += os.read(self.window, 65536).count(b"x")
            except OSError:  # all have closed it
                return

    def said(self):
        return self.errors.read_text()[-2000:]


class Bench:
    def __init__(self, options: argparse.Namespace):
        self.options = options
        self.failures = []
        self.torchrun = None
        if options.torchrun and os.access(options.torchrun, os.X_OK):
            self.torchrun = str(options.torchrun)
        else:
            print("missing peer: torchrun")

    def throughput(self, what, flags, goal, clock="cpu", peer=True):
        def rate(launcher, lines):
            values = []
            for _ in range(self.options.runs if launcher != self.torchrun else 1):
                spent = self.cost(launcher, 1, lines, 0, flags)
                values.append(lines * LINE_BYTES / 1e6 / spent[clock])
            return statistics.median(values)

        ours = rate(str(self.options.ddprun), self.options.lines)
        theirs = rate(self.torchrun, self.options.slow_lines) if self.torchrun and peer else None
        shown = f"{theirs:>12.0f}{ours / theirs:>8.1f}" if theirs else f"{'-':>12}{'-':>8}"
        verdict = f"  >= {goal}{'' if ours >= goal else ' MISSED'}" if goal else ""
        print(f"{what:<54}{ours:>12.0f}{shown}{verdict}", flush=True)

    def console(self, what, kind):
        """As fast as a worker can write what is not redirected."""
        lines = self.options.lines // 4

        def rate(launcher):
            took = statistics.median(self.run(launcher, 1, lines, 0, [], kind)["writing"]
                                     for _ in range(self.options.runs))
            return lines * LINE_BYTES / 1e6 / max(took, 1e-6)

        ours = rate(str(self.options.ddprun))
        theirs = rate(self.torchrun) if self.torchrun else None
        shown = f"{theirs:>12.0f}{ours / theirs:>8.2f}" if theirs else f"{'-':>12}{'-':>8}"
        print(f"{what:<54}{ours:>12.0f}{shown}", flush=True)

    def chatty(self):
        options = self.options
        lines = options.rate * options.seconds

        def share(launcher):
            spent = self.cost(launcher, 8, lines, options.rate, ["--tee=3"])
            return 100 * spent["cpu"] / options.seconds

        ours = statistics.median(share(str(options.ddprun)) for _ in range(options.runs))
        theirs = share(self.torchrun) if self.torchrun else None
        shown = f"{theirs:>11.1f}%{ours / theirs:>8.3f}" if theirs else f"{'-':>12}{'-':>8}"
        what = f"processor of a launcher, 8 ranks of {options.rate} lines/s"
        print(f"{what:<54}{ours:>11.1f}%{shown}", flush=True)

    def cost(self, launcher, workers, lines, rate, flags):
        """What passing these lines on costs, beyond a run that writes one of them."""
        whole = self.run(launcher, workers, lines, rate, flags)
        empty = self.run(launcher, workers, 1, 0, flags)
        return {clock: max(whole[clock] - empty[clock], 1e-6) for clock in whole}

    def run(self, launcher, workers, lines, rate, flags, console="null"):
        folder = tempfile.mkdtemp(prefix="ddprun-bench-", dir="/dev/shm")
        try:
            own = ["--local-addr=127.0.0.1"] if launcher == self.torchrun else []
            command = [launcher, "--standalone", f"--nproc-per-node={workers}", "--no-python",
                       f"--log-dir={folder}/logs", *own, *flags, str(self.options.writer),
                       str(lines), str(rate), folder]
            with Console(console, folder) as streams:
                began = time.monotonic()
                process = subprocess.Popen(command, stdout=streams.out, stderr=streams.err)
                _, status, used = os.wait4(process.pid, 0)
                wall = time.monotonic() - began
            process.returncode = os.waitstatus_to_exitcode(status)
            if process.returncode != 0:
                sys.exit(f"{' '.join(command)}: exit code {process.returncode}\n"
                         + streams.said())
            texts = [pathlib.Path(folder, str(rank)).read_text() for rank in range(workers)]
            times = [[int(word) / 1e6 for word in text.split()] for text in texts]
            if console == "null":
                self.check(folder, workers, lines, flags)
            elif not 0 <= streams.shown - workers * lines * (LINE_BYTES - 1) < 200:
                self.failures.append(f"{console}: {streams.shown} letters of {lines} lines")
            own_time = sum(cpu for cpu, _ in times)
            return {"cpu": used.ru_utime + used.ru_stime - own_time, "wall": wall,
                    "writing": max(took for _, took in times)}
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def check(self, folder, workers, lines, flags):
        """All of every rank is in its file, or, with a limit, no more than that."""
        written = [path.stat().st_size for path in pathlib.Path(folder).rglob("stdout.log*")]
        limited = "--log-max=64M" in flags
        total = sum(written)
        right = total == workers * lines * LINE_BYTES or (limited and total < 65 << 20)
        if not right:
            self.failures.append(f"{flags}: {written} bytes of {workers} x {lines} lines")


if __name__ == "__main__":
    sys.exit(main())
