"""A ddprun agent at torchrun's store, and torchrun at a ddprun run's coordinator: refused at once.

    mixed_launchers_test.py PATH_TO_DDPRUN

torch and torchrun are those of this Python.
"""

import pathlib
import re
import subprocess
import sys
import time

from harness import Failed, free_port
from exit_codes import REFUSED
from sentences import kTorchrunCame, kWaitingForNodes

TORCHRUN = pathlib.Path(sys.executable).with_name("torchrun")
HUNG_SECONDS = 120  # torchrun alone takes seconds to start


def main() -> int:
    try:
        import torch
    except ImportError as error:
        print(f"skipped: this Python has no torch ({error})")
        return 77
    ddprun = sys.argv[1]
    failed = 0
    for play in (at_libuv_store, at_plain_store, torchrun_c10d, torchrun_static):
        try:
            play(ddprun)
            print(f"torch {torch.__version__}: {play.__doc__}", flush=True)
        except Failed as found:
            failed += 1
            print(f"FAILED torch {torch.__version__}: {play.__doc__}\n{found}", flush=True)
    return 1 if failed else 0


def at_libuv_store(ddprun: str) -> None:
    """An agent at a libuv store names it."""
    agent_at_store(ddprun, use_libuv=True)


def at_plain_store(ddprun: str) -> None:
    """An agent at a store without libuv names it."""
    agent_at_store(ddprun, use_libuv=False)


def agent_at_store(ddprun: str, use_libuv: bool) -> None:
    from torch.distributed import TCPStore
    store = TCPStore("127.0.0.1", 0, None, True, use_libuv=use_libuv, wait_for_workers=False)
    began = time.monotonic()
    agent = subprocess.run(
        [ddprun, "--nnodes=2", "--rdzv-backend=c10d", f"--rdzv-endpoint=127.0.0.1:{store.port}",
         "--rdzv-conf=is_host=false", "true"], capture_output=True, text=True, timeout=HUNG_SECONDS)
    took = time.monotonic() - began
    expect(agent.returncode == REFUSED, f"exit code {agent.returncode}:\n{agent.stderr}")
    expect(re.search(rf"a c10d store .* answers at 127.0.0.1:{store.port}", agent.stderr) is not
           None, agent.stderr)
    expect(took < 10, f"{took:.1f} s")  # well below a second where the machine has time


def torchrun_c10d(ddprun: str) -> None:
    """torchrun at a c10d run's coordinator ends, and the run's console says who came."""
    port = free_port()
    torchrun_at_run(ddprun, ["--rdzv-backend=c10d", f"--rdzv-endpoint=127.0.0.1:{port}"])


def torchrun_static(ddprun: str) -> None:
    """torchrun at a static run's coordinator ends, and the run's console says who came."""
    torchrun_at_run(ddprun, ["--master-addr=127.0.0.1", f"--master-port={free_port()}"])


def torchrun_at_run(ddprun: str, where: list[str]) -> None:
    root = subprocess.Popen([ddprun, "--nnodes=2", *where, "--node-rank=0", "true"], text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    try:
        seen = read_until(root, kWaitingForNodes)
        other = subprocess.run([TORCHRUN, "--nnodes=2", *where, "--node-rank=1", "--no-python",
                                "true"], capture_output=True, text=True, timeout=HUNG_SECONDS)
        expect(other.returncode != 0, "torchrun ended with 0")
        expect(kTorchrunCame in read_until(root, kTorchrunCame), seen)
    finally:
        root.terminate()
        root.communicate(timeout=HUNG_SECONDS)


def read_until(process: subprocess.Popen, words: str) -> str:
    lines = []
    for line in process.stdout:  # ends with the process
        lines.append(line)
        if words in line:
            return "".join(lines)
    raise Failed(f"{words!r} was not said:\n{''.join(lines)}")


def expect(true: bool, otherwise: str) -> None:
    if not true:
        raise Failed(otherwise)


if __name__ == "__main__":
    sys.exit(main())
