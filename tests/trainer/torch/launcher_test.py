"""Under ddprun: killing a worker costs one restart; the next round resumes from its checkpoint."""

import os
import re
import signal
import subprocess

import harness


def worker_pids(launcher):
    """Descendants of the launcher that run the trainer, by rank."""
    pids = {}
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            command = open(f"/proc/{entry}/cmdline", "rb").read().split(b"\0")
            variables = open(f"/proc/{entry}/environ", "rb").read().split(b"\0")
        except OSError:
            continue
        if command[0].endswith(b"resnet18_cifar10") and f"MARK={launcher}".encode() in variables:
            rank = next(v for v in variables if v.startswith(b"RANK="))
            pids[int(rank.split(b"=")[1])] = int(entry)
    return pids


def main():
    ddprun, folder = harness.program("DDPRUN"), harness.folder()
    mark = os.urandom(8).hex()
    command = [ddprun, "--standalone", "--nproc-per-node=2", "--max-restarts=1", "--no-python"]
    flags = ["--epochs", 8, "--checkpoint-every", "1ms", "--checkpoint-async", "off",
             "--log-every", 5]
    command += harness.generated(folder, *flags)
    process = subprocess.Popen(
        [str(word) for word in command],
        env=dict(os.environ, MARK=mark, OMP_NUM_THREADS="1"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    output, killed = [], False
    try:
        for line in process.stdout:
            output.append(line)
            if line.startswith("train step 25/") and not killed:
                os.kill(worker_pids(mark)[1], signal.SIGKILL)
                killed = True
        _, error = process.communicate(timeout=harness.LIMIT_S)
    finally:
        process.kill()
        process.wait()
    text = "".join(output)
    print(text, error)
    assert killed and process.returncode == 0, process.returncode
    resumed = int(re.search(r"^resumed from step (\d+) ", text, re.MULTILINE).group(1))
    assert resumed >= 24, resumed
    assert "final: step 80," in text
    assert not worker_pids(mark)


if __name__ == "__main__":
    main()
