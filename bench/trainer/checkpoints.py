"""What checkpoints cost the trainer: interleaved runs with each kind, medians, ratios to none.

    checkpoints.py --trainer build/trainer/bin/resnet18_cifar10 [--rounds 5] [--width 64]

Step: wall time from a fifth of the run to its last step. Saved: checkpoints before the end of it.
Waited: how long training waited for one. Beside: processor time of the thread that wrote it.
"""

import argparse
import json
import pathlib
import re
import shutil
import statistics
import tempfile

from compare import Run

KINDS = {
    "none": ["--checkpoint-every", "off"],
    "every step, training waits": ["--checkpoint-every", "1ms", "--checkpoint-async", "off"],
    "as often as written beside": ["--checkpoint-every", "1ms"],
    "budget of 1 %": ["--checkpoint-budget", "1"],
}
NUMBERS = ("step_s", "saved", "waited_s", "beside_s")
COSTS = re.compile(r"^checkpoints: (\d+) saved; training waited ([0-9.]+) s, ([0-9.]+) s of")


class Kind(Run):
    """One run: seconds per step, and what its checkpoints have cost."""

    def __init__(self, flags, words):
        folder = pathlib.Path(tempfile.mkdtemp(prefix="ddprun_bench_", dir=flags.disk))
        command = [flags.trainer, "--generated", "--resume", "none", "--model-dir", folder]
        command += ["--width", flags.width, "--batch-size", flags.batch_size, "--amp", "off"]
        command += ["--limit-test", 2, "--limit-train", flags.steps * flags.batch_size]
        command += ["--steps", flags.steps, "--log-every", flags.steps // 5, "--lr", 0.01]
        try:
            super().__init__([*command, *words], flags.ranks)
            rows = [json.loads(line) for line in (folder / "metrics.jsonl").open()]
        finally:
            shutil.rmtree(folder)
        rows = [row for row in rows if row["phase"] == "train"]
        first, last = rows[0], rows[-1]
        assert last["step"] == flags.steps, "a run did not do all its steps"
        self.step_s = (last["seconds"] - first["seconds"]) / (last["step"] - first["step"])

    def read_steps(self, lines):
        for line in lines:
            if found := COSTS.match(line):
                self.saved, self.waited_s, self.beside_s = map(float, found.groups())


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trainer", required=True)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--disk", help="a folder on the file system to be measured [/tmp]")
    return parser.parse_args()


def median(runs, number):
    return statistics.median(getattr(run, number) for run in runs)


def main():
    flags = arguments()
    runs = {kind: [] for kind in KINDS}
    for _ in range(flags.rounds):
        for kind, words in KINDS.items():
            runs[kind].append(Kind(flags, words))
    none = {number: median(runs["none"], number) for number in NUMBERS}
    print(f"width {flags.width}, global batch {flags.batch_size}, {flags.ranks} ranks,", end=" ")
    print(f"{flags.steps} steps, medians of {flags.rounds} runs")
    print(f"{'checkpoints':<28} {'step':>8} {'ratio':>6} {'saved':>6} {'waited':>9} {'beside':>9}")
    for kind, done in runs.items():
        found = {number: median(done, number) for number in NUMBERS}
        more = {number: found[number] - none[number] for number in NUMBERS}
        print(f"{kind:<28} {found['step_s'] * 1000:>5.0f} ms", end=" ")
        print(f"{found['step_s'] / none['step_s']:>6.3f} {more['saved']:>6.0f}", end="")
        for number in ("waited_s", "beside_s") if more["saved"] else ():
            print(f" {more[number] / more['saved'] * 1000:>6.1f} ms", end="")
        print()


if __name__ == "__main__":
    main()
