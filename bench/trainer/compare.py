"""Compares the trainer with the same model in Python DDP: interleaved runs, medians, ratios.

    compare.py --trainer build/trainer/bin/resnet18_cifar10 [--rounds 5] [--width 16] [--amp off]

CPU seconds per step: of both ranks, from the difference of a long and a short run, to exclude start
and end. First step: from exec of rank 0 until it has printed step 1. Memory: peak resident set of
rank 0. --device cuda: images per second over the second half of one run instead.
"""

import argparse
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

PYTHON_PEER = pathlib.Path(__file__).with_name("python_ddp.py")
SKIPPED = 77
LIMIT_S = 600
STEP = re.compile(r"train step (\d+)/\d+ .*?loss ([0-9.]+) .*?(\d+) img/s")


class Run:
    """One finished run of all ranks and its cost."""

    def __init__(self, command, world):
        from torch.distributed import TCPStore

        store = TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
        self.started = time.monotonic()
        self.processes = [self.start(command, rank, world, store.port) for rank in range(world)]
        try:
            self.read_steps(self.processes[0].stdout)
            usages = [os.wait4(process.pid, 0) for process in self.processes]
        finally:
            for process in self.processes:
                process.kill()
        assert all(status == 0 for _, status, _ in usages), f"{command} failed: {usages}"
        self.cpu_s = sum(usage.ru_utime + usage.ru_stime for _, _, usage in usages)
        self.memory_mib = usages[0][2].ru_maxrss / 1024

    @staticmethod
    def start(command, rank, world, port):
        variables = dict(
            os.environ,
            RANK=str(rank),
            LOCAL_RANK=str(rank),
            WORLD_SIZE=str(world),
            LOCAL_WORLD_SIZE=str(world),
            MASTER_ADDR="127.0.0.1",
            MASTER_PORT=str(port),
            TORCHELASTIC_USE_AGENT_STORE="True",
            GLOO_SOCKET_IFNAME="lo",
            OMP_NUM_THREADS="1" if world > 1 else str(os.cpu_count()),
        )
        output = subprocess.PIPE if rank == 0 else subprocess.DEVNULL
        words = [str(word) for word in command]
        return subprocess.Popen(
            words, env=variables, stdout=output, stderr=subprocess.DEVNULL, text=True
        )

    def read_steps(self, lines):
        self.first_step_s, self.speeds, self.losses = None, [], []
        for line in lines:
            match = STEP.search(line)
            if not match:
                continue
            if self.first_step_s is None:
                self.first_step_s = time.monotonic() - self.started
            self.losses.append(float(match.group(2)))
            self.speeds.append(float(match.group(3)))


def trainer_command(flags, steps, every, folder):
    command = [flags.trainer, "--generated", "on", "--model-dir", folder, "--resume", "none"]
    command += ["--limit-test", 2, "--limit-train", steps * flags.batch_size]
    return command + common(flags, steps, every) + ["--checkpoint-every", "off", "--lr", 0.01]


def common(flags, steps, every):
    return [
        *("--width", flags.width, "--batch-size", flags.batch_size, "--steps", steps),
        *("--amp", flags.amp, "--device", flags.device, "--log-every", every),
    ]


def measure(flags, steps, every):
    """One run of each, trainer first; a run's result is checked before its cost is used."""
    folder = tempfile.mkdtemp(prefix="ddprun_bench_")
    try:
        ours = Run(trainer_command(flags, steps, every, folder), flags.ranks)
        theirs = Run([sys.executable, PYTHON_PEER, *common(flags, steps, every)], flags.ranks)
    finally:
        shutil.rmtree(folder)
    for run in (ours, theirs):
        assert len(run.losses) == steps // every, "a run did not do all its steps"
        assert all(loss == loss for loss in run.losses), "a run diverged"
    return ours, theirs


def show(what, ours, theirs, unit, goal):
    mine, other = statistics.median(ours), statistics.median(theirs)
    print(f"{what:<28} {mine:>10.3f} {other:>10.3f} {unit:<10} {mine / other:>6.2f}   {goal}")


def compare_cpu(flags):
    short, long = flags.steps // 4, flags.steps
    per_step, first, memory = ([], []), ([], []), ([], [])
    for _ in range(flags.rounds):
        start = measure(flags, 1, 1)
        few, many = measure(flags, short, short), measure(flags, long, short)
        for side in (0, 1):
            per_step[side].append((many[side].cpu_s - few[side].cpu_s) / (long - short))
            first[side].append(start[side].first_step_s)
            memory[side].append(many[side].memory_mib)
    show("CPU seconds per step", *per_step, "s", "<= 1.05")
    show("exec to first step", *first, "s", "<= 0.50")
    show("peak memory of rank 0", *memory, "MiB", "")


def compare_gpu(flags):
    pairs = [measure(flags, flags.steps, flags.steps // 10) for _ in range(flags.rounds)]
    speeds = [[speed for pair in pairs for speed in pair[side].speeds[5:]] for side in (0, 1)]
    show("images per second", *speeds, "img/s", ">= 1.00")


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trainer", required=True)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--width", type=int, default=16)
    parser.add_argument("--batch-size", type=int, default=128)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--amp", choices=["on", "off"], default="off")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    return parser.parse_args()


def main():
    flags = arguments()
    import torch

    if flags.device == "cuda" and not torch.cuda.is_available():
        print("skipped: no CUDA device is visible")
        sys.exit(SKIPPED)
    print(f"width {flags.width}, global batch {flags.batch_size}, {flags.ranks} ranks,", end=" ")
    print(f"{'bf16' if flags.amp == 'on' else 'fp32'}, channels_last, torch {torch.__version__}")
    print(f"{'medians':<28} {'trainer':>10} {'Python':>10} {'':<10} {'ratio':>6}   goal")
    compare_gpu(flags) if flags.device == "cuda" else compare_cpu(flags)


if __name__ == "__main__":
    main()
