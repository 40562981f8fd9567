"""Gloo workers of which one comes to the next round a second late, under a launcher.

    gloo_restart_test.py agent DRIVER    they connect in each of DDPRUN_TEST_REPEATS rounds (2)
    gloo_restart_test.py torchrun        under torchrun of this interpreter a late round fails: it
                                         keeps the store of the first round, and rank 1's old
                                         address. Which rank reads first is a race, so this tries
                                         a few times, and skips where every round connected
"""

import os
import pathlib
import signal
import subprocess
import sys

WORKER = str(pathlib.Path(__file__).with_name("gloo_worker.py"))
SECONDS_PER_ROUND = 60
TORCHRUN_TRIES = 5


def main() -> int:
    if sys.argv[1] == "agent":
        return agent_connects(sys.argv[2], int(os.environ.get("DDPRUN_TEST_REPEATS", "2")))
    return torchrun_does_not()


def agent_connects(driver: str, repeats: int) -> int:
    code, text = run([driver, "2", f"restarts={repeats}", "--", sys.executable, "-u", WORKER],
                     SECONDS_PER_ROUND * (repeats + 1))
    late = [number for number in range(2, repeats + 2)
            if all(f"connected: round {number} rank {rank}" in text for rank in (0, 1))]
    print(f"ddprun: {len(late)} of {repeats} late rounds connected, exit {code}")
    if code != 0 or len(late) != repeats:
        print(text)
        return 1
    return 0


def torchrun_does_not() -> int:
    torchrun = str(pathlib.Path(sys.executable).with_name("torchrun"))
    if not os.access(torchrun, os.X_OK):
        print(f"skipped: no {torchrun}")
        return 77
    command = [torchrun, "--standalone", "--nproc-per-node=2", "--max-restarts=1", WORKER]
    for tries in range(1, TORCHRUN_TRIES + 1):
        code, text = run(command, SECONDS_PER_ROUND)
        if "connected: round 1 rank 0" not in text:
            print(f"not even the first round connected, exit {code}\n{text}")
            return 1
        if "connected: round 2 rank 0" not in text:
            print(f"torchrun: late round {tries} did not connect, exit {code}")
            return 0
    print(f"skipped: torchrun connected in {TORCHRUN_TRIES} of {TORCHRUN_TRIES} late rounds here, "
          "so there is nothing to compare with")
    return 77


def run(command: list[str], seconds: float) -> tuple[int, str]:
    """Exit code (negative: it hung and was killed with all it started) and what it printed."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                               stdin=subprocess.DEVNULL, start_new_session=True)
    try:
        text, _ = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGTERM)
        try:
            text, _ = process.communicate(timeout=45)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            text, _ = process.communicate()
        return -1, text
    return process.returncode, text


if __name__ == "__main__":
    sys.exit(main())
