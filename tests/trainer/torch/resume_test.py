"""A killed run resumes at the right step: same final bits, every image once per epoch.

resume_test.py CASE, one of the functions below.
"""

import collections
import csv
import os
import random
import re
import signal
import subprocess
import sys
import threading

import harness

NEVER = threading.Event()  # its wait is a random moment
SAMPLES, BATCH = 650, 64  # 11 steps an epoch; the last one has 10 images
STEPS_PER_EPOCH = 11
MASK = (1 << 64) - 1


def last_in(folder):
    return folder / "resnet18.last.safetensors"


def run(folder, *arguments, world=2):
    limits = ["--limit-train", SAMPLES, "--batch-size", BATCH, "--log-every", 3]
    return harness.run_ranks(world, harness.generated(folder, *limits, *arguments))


def kill_at(folder, line, *arguments):
    """Starts two ranks that save after every step; SIGKILLs both when rank 0 prints `line`."""
    ranks = start(folder, "--checkpoint-async", "off", *arguments, world=2)
    try:
        until(ranks, line)
    finally:
        kill(ranks)


def start(folder, *arguments, world=1, variables=None):
    """Ranks that save as often as they can."""
    limits = ["--limit-train", SAMPLES, "--batch-size", BATCH, "--log-every", 3]
    command = harness.generated(folder, *limits, "--checkpoint-every", "1ms", *arguments)
    return harness.Ranks(world, variables).start(command)


def until(ranks, line):
    """The output until then."""
    lines = []
    for text in ranks.processes[0].stdout:
        lines.append(text)
        if text.startswith(line):
            return "".join(lines)
    raise AssertionError(f"never saw {line!r}: {lines}")


def kill(ranks):
    for process in ranks.processes:
        process.send_signal(signal.SIGKILL)
    for process in ranks.processes:
        process.communicate(timeout=harness.LIMIT_S)


def mix(value):
    value = (value + 0x9E3779B97F4A7C15) & MASK
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & MASK
    return value ^ (value >> 31)


def used_per_epoch(folder):
    """(images, digest) of every epoch; of a repeated step, the last execution counts."""
    steps = {}
    for file in sorted(folder.glob("log.rank*.csv")):
        for row in csv.DictReader(file.open()):
            attempt = (int(row["step"]), int(row["rank"]))
            steps[attempt] = [int(row[key]) for key in ("epoch", "world", "count", "digest")]
    worlds = {step: steps[(step, 0)][1] for step, rank in steps if rank == 0}
    epochs = collections.defaultdict(lambda: [0, 0])
    for (step, rank), (epoch, world, count, digest) in steps.items():
        if rank < worlds[step]:
            epochs[epoch][0] += count
            epochs[epoch][1] = (epochs[epoch][1] + digest) & MASK
    return dict(epochs)


def expect_every_image_once(folder, epochs):
    everything = sum(mix(i + 1) for i in range(SAMPLES)) & MASK
    assert used_per_epoch(folder) == {epoch: [SAMPLES, everything] for epoch in range(epochs)}


def same_bits_after_a_kill():
    whole, broken = harness.folder(), harness.folder()
    undisturbed = run(whole, "--epochs", 2)
    kill_at(broken, "train step 6/", "--epochs", 2)
    output = run(broken, "--epochs", 2)
    resumed = int(re.search(r"^resumed from step (\d+) ", output, re.MULTILINE).group(1))
    print("resumed from step", resumed)
    assert 5 <= resumed < 22, resumed
    assert harness.weights_of(output) == harness.weights_of(undisturbed)


def training_continues_while_a_checkpoint_is_written():
    folder = harness.folder()
    disk = harness.SlowDisk(folder)
    disk.stall()
    ranks = start(folder, "--epochs", 1, variables=disk.variables)
    hung = threading.Timer(300, disk.go_on)  # a training that waits for the disk ends too
    hung.start()
    until(ranks, "train step 9/")
    written = last_in(folder).exists()
    hung.cancel()
    disk.go_on()
    output = ranks.finish()
    assert not written, output
    assert harness.step_in(last_in(folder)) == STEPS_PER_EPOCH


def kills_at_any_moment_of_background_writes():
    """RESUME_KILLS: how many; RESUME_SEED."""
    seed = int(os.environ.get("RESUME_SEED", str(random.randrange(1 << 30))))
    print("seed", seed, flush=True)
    chance = random.Random(seed)
    whole, folder = harness.folder(), harness.folder()
    flags = ["--epochs", 6, "--log-every", 1]  # 66 steps
    undisturbed = run(whole, *flags, world=1)
    saved = None
    for _ in range(int(os.environ.get("RESUME_KILLS", "8"))):
        ranks = start(folder, *flags)
        try:
            output = until(ranks, "train step")
            for _ in range(chance.randrange(5)):
                until(ranks, "train step")
            NEVER.wait(chance.uniform(0, 0.03))
        finally:
            kill(ranks)
        expect_resumed(output, saved)
        now = harness.step_in(last_in(folder)) if last_in(folder).exists() else None
        assert now is None or now >= (saved or 0), (now, saved)
        saved = now
        print("killed, step", saved, flush=True)
    output = run(folder, *flags, world=1)
    expect_resumed(output, saved)
    assert harness.weights_of(output) == harness.weights_of(undisturbed)


def expect_resumed(output, saved):
    found = re.search(r"^resumed from step (\d+) ", output, re.MULTILINE)
    assert (int(found[1]) if found else None) == saved, output
    assert "damaged" not in output, output


def start_in(folders, *arguments):
    """One rank per folder: nodes whose --model-dir is their own disk."""
    limits = ["--limit-train", SAMPLES, "--batch-size", BATCH, "--epochs", 2]
    commands = [harness.generated(folder, *limits, *arguments) for folder in folders]
    return harness.Ranks(len(folders)).start_each(commands)


def newest_checkpoint_of_any_rank_wins():
    whole, old, empty = harness.folder(), harness.folder(), harness.folder()
    undisturbed = run(whole, "--epochs", 2)
    kill_at(old, "train step 6/", "--epochs", 2)
    output = start_in([empty, old]).finish()
    resumed = re.search(r"^resumed from step (\d+) \(sent by rank 1, ", output, re.MULTILINE)
    assert resumed and 5 <= int(resumed.group(1)) < 22, output
    assert harness.weights_of(output) == harness.weights_of(undisturbed)
    assert (empty / "resnet18.last.safetensors").exists()


def unusable_checkpoint_of_one_rank_ends_all():
    other, empty = harness.folder(), harness.folder()
    run(other, "--epochs", 1, "--seed", 7, world=1)
    ranks = start_in([empty, other])
    errors = [process.communicate(timeout=120)[1] for process in ranks.processes]
    print(errors)
    assert [process.returncode for process in ranks.processes] == [1, 1], errors
    assert "rank 1 cannot resume from its --model-dir" in errors[0], errors
    assert "seed" in errors[1], errors
    assert all("lost the connection" not in error for error in errors), errors


def every_image_once():
    folder = harness.folder()
    flags = ["--schedule", "constant", "--lr", "0.01", "--sample-log", folder / "log"]
    run(folder, *flags, "--steps", 4)  # stops in mid-epoch, on two ranks
    one = run(folder, *flags, "--steps", 15, world=1)
    assert "resumed from step 4 " in one, one
    three = run(folder, *flags, "--steps", 2 * STEPS_PER_EPOCH, world=3)
    assert "resumed from step 15 " in three, three
    expect_every_image_once(folder, 2)


def every_image_once_after_a_kill():
    folder = harness.folder()
    flags = ["--epochs", 2, "--sample-log", folder / "log"]
    kill_at(folder, "train step 9/", *flags)
    run(folder, *flags)
    expect_every_image_once(folder, 2)


def damaged_checkpoint_is_passed_over():
    folder = harness.folder()
    run(folder, "--epochs", 2)
    last = folder / "resnet18.last.safetensors"
    damaged = bytearray(last.read_bytes())
    damaged[len(damaged) // 2] ^= 1
    last.write_bytes(damaged)
    output = run(folder, "--epochs", 3)
    assert "resumed from step 11 " in output, output  # the one before: the end of epoch one
    assert str(last) in output.split("resumed from")[0], output
    final = re.search(r"^final: step (\d+)", output, re.MULTILINE).group(1)
    assert final == "33", output


def other_batch_size_is_refused():
    folder = harness.folder()
    run(folder, "--epochs", 1, world=1)
    command = harness.generated(folder, "--limit-train", SAMPLES, "--batch-size", 32)
    refused = subprocess.run([str(w) for w in command], capture_output=True, text=True, timeout=120)
    print(refused.stderr)
    assert refused.returncode != 0 and "batch" in refused.stderr
    assert len(refused.stderr.splitlines()) == 1


def best_of_another_folder_is_not_missed():
    """Resumes from another folder's file: its best weights are not available for export."""
    old, new = harness.folder(), harness.folder()
    flags = ["--limit-test", 100, "--batch-size", 130]
    run(old, *flags, "--epochs", 3, world=1)
    last = old / "resnet18.last.safetensors"
    # A rate that ruins the weights: the previous accuracy is not reached again.
    flags += ["--epochs", 4, "--lr", 5, "--schedule", "constant", "--resume", last]
    output = run(new, *flags, "--export", new / "model.pt", world=1)
    assert "resumed from step 15 " in output, output
    assert (new / "model.pt").exists()


def finished_run_says_its_result():
    folder = harness.folder()
    first, again = run(folder, "--epochs", 1), run(folder, "--epochs", 1)
    assert "resumed from step 11 " in again
    assert harness.accuracy_of(first) == harness.accuracy_of(again)
    assert harness.weights_of(first) == harness.weights_of(again)
    steps = [row["step"] for row in csv.DictReader((folder / "metrics.csv").open())]
    assert steps.count("11") == 2, steps  # one train row, one test row


if __name__ == "__main__":
    globals()[sys.argv[1]]()
