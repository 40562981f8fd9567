#!/usr/bin/env python3
"""How long after SIGKILL of one of four ranks all four take part in the next round.

python3 tests/survivors/measure.py path/to/ddprun [SAMPLES]
"""
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from eventually import eventually

WORKER = str(pathlib.Path(__file__).resolve().parent / "survivor.py")
RANKS = 4


def takers(folder, number):
    return {int(path.name.split(".")[0]): dict(line.split("=", 1)
                                               for line in path.read_text().splitlines())
            for path in folder.glob(f"[0-9]*.{number}")}


def said_ready(folder):
    return sum(path.read_text().count('"event":"ready"')
               for path in folder.glob("logs/*/events.jsonl"))


def sample(ddprun):
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        run = subprocess.Popen(
            [ddprun, "--standalone", "--restart=failed", f"--nproc-per-node={RANKS}",
             "--max-restarts=1", f"--log-dir={folder / 'logs'}", "--no-python",
             sys.executable, WORKER, str(folder)],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        assert eventually(lambda: len(takers(folder, 1)) == RANKS)
        before = takers(folder, 1)
        assert eventually(lambda: said_ready(folder) == RANKS)  # and what they said before is read
        (victim,) = [pid for pid, one in before.items() if one["RANK"] == "3"]
        killed = time.monotonic()
        os.kill(victim, signal.SIGKILL)
        assert eventually(lambda: len(takers(folder, 2)) == RANKS)
        after = takers(folder, 2)
        (folder / "done").touch()
        run.wait()
        times = {pid: (float(one["at"]) - killed) * 1000 for pid, one in after.items()}
        kept = [times[pid] for pid in after if pid in before]
        return (max(kept) if len(kept) == RANKS - 1 else None), max(times.values())


def line(name, values):
    values = sorted(values)
    at = [values[min(len(values) - 1, int(len(values) * share))] for share in (0.5, 0.99)]
    print(f"{name}: p50 {at[0]:.1f} ms, p99 {at[1]:.1f} ms of {len(values)}")


def main():
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 100
    samples = [sample(os.path.abspath(sys.argv[1])) for _ in range(count)]
    line("SIGKILL to the three that are kept", [kept for kept, _ in samples if kept is not None])
    line("SIGKILL to all four", [every for _, every in samples])


main()
