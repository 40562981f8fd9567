"""Training on real images learns: accuracy_test.py STEPS MIN_PERCENT, width 8, two ranks."""

import json
import sys

import harness


def mean(values):
    return sum(values) / len(values)


def main():
    steps, floor = int(sys.argv[1]), float(sys.argv[2])
    images, folder = harness.real_images(), harness.folder()
    command = [harness.program("TRAINER"), "--data-dir", images, "--model-dir", folder]
    command += ["--width", 8, "--steps", steps, "--log-every", 10]
    output = harness.run_ranks(2, command)
    print(output)
    rows = [json.loads(line) for line in (folder / "metrics.jsonl").open()]
    losses = [row["loss"] for row in rows if row["phase"] == "train"]
    assert mean(losses[-5:]) < mean(losses[:5]), "the last 50 steps are no better than the first 50"
    accuracy = harness.accuracy_of(output)
    assert accuracy >= floor, f"{accuracy} % after {steps} steps, at least {floor} % expected"


if __name__ == "__main__":
    main()
