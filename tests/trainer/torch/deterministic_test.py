"""--deterministic: the bits of a run do not depend on the world size.

deterministic_test.py CASE, one of the functions below.
"""

import re
import sys

import harness

# 11 steps an epoch; the last one has 10 images, two for each of the first micro-batches.
SHORT_LAST_BATCH = ["--limit-train", 650, "--batch-size", 64, "--log-every", 4]


def results(world, *arguments, folder=None):
    """Final sentence, hash of the weights, and the metrics of every row."""
    folder = folder or harness.folder()
    command = harness.generated(folder, *SHORT_LAST_BATCH, *arguments)
    output = harness.run_ranks(world, command)
    rows = (folder / "metrics.csv").read_text().splitlines()
    names = rows[0].split(",")
    same = [names.index(name) for name in ("phase", "step", "loss", "top1", "top3", "top5")]
    numbers = [[row.split(",")[i] for i in same] for row in rows[1:]]
    final = re.search(r"^final: .*$", output, re.MULTILINE).group(0)
    return final, harness.weights_of(output), numbers


def same_bits_for_every_world_size():
    expected = results(1, "--deterministic", "--epochs", 2)
    print(expected)
    for world in (2, 3, 4):
        assert results(world, "--deterministic", "--epochs", 2) == expected, world
    again = results(2, "--epochs", 2)
    assert again[1] != expected[1], "the flag does nothing"


def more_ranks_than_micro_batches():
    expected = results(1, "--deterministic", 2, "--steps", 3)
    assert results(3, "--deterministic", 2, "--steps", 3) == expected
    assert results(1, "--deterministic", 4, "--steps", 3)[1] != expected[1]


def world_size_may_change_on_resume():
    folder = harness.folder()
    steps = ["--deterministic", "--schedule", "constant", "--steps"]
    expected = results(2, *steps, 15)
    results(4, *steps, 4, folder=folder)
    assert results(3, *steps, 15, folder=folder)[:2] == expected[:2]


if __name__ == "__main__":
    globals()[sys.argv[1]]()
