"""The report about real Gloo workers of which rank 1 is the culprit, on one node and on two.

    gloo_culprit_test.py DDPRUN
"""

import os
import pathlib
import socket
import subprocess
import sys

WORKER = str(pathlib.Path(__file__).with_name("gloo_culprit_worker.py"))
SECONDS = 240

# What rank 1 does: the exit code, and what the report says.
CASES = {
    "stopped": (1, ["[W-COLLECTIVE]", "; rank 1 (", "rank 1 is stopped (state T)"]),
    "asleep": (1, ["[W-COLLECTIVE]", "; rank 1 (", "rank 1 waits in "]),
    "exit0": (1, ["[W-PEER]", "connection to rank 1 (", "rank 1 exited with code 0"]),
    "missing": (1, ["[W-RENDEZVOUS]", "; rank 1 (", "rank 1 waits in "]),
    "barrier": (1, ["[W-COLLECTIVE]", "; rank 1 (", "rank 1 waits in "]),
    "killed": (137, ["[W-KILLED] rank 1 "]),
    # The threads of Gloo may abort a process that shuts down.
    "raises": ((1, 134), ["[W-EXIT] rank 1 ", "KeyError: 'labels'"]),
    "slow": (0, []),
}


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def start(arguments: list[str], mode: str) -> subprocess.Popen:
    environment = {**os.environ, "GLOO_SOCKET_IFNAME": "lo"}
    command = [sys.argv[1], *arguments, sys.executable, "-u", WORKER, mode]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                            stdin=subprocess.DEVNULL, env=environment)


def run(mode: str, nodes: int) -> tuple[list[int], list[str]]:
    """Exit codes and consoles."""
    if nodes == 1:
        all_arguments = [["--standalone", "--nproc-per-node=3", "--no-python"]]
    else:
        endpoint = f"--rdzv-endpoint=127.0.0.1:{free_port()}"
        all_arguments = [["--nnodes=2", f"--node-rank={rank}", endpoint, "--nproc-per-node=1",
                          "--no-python"] for rank in range(2)]
    launchers = [start(arguments, mode) for arguments in all_arguments]
    texts = [launcher.communicate(timeout=SECONDS)[0] for launcher in launchers]
    return [launcher.returncode for launcher in launchers], texts


def failures_of(mode: str, nodes: int) -> list[str]:
    code, phrases = CASES[mode]
    codes, texts = run(mode, nodes)
    text = "".join(texts)
    allowed = code if isinstance(code, tuple) else (code,)
    alike = len(set(codes)) == 1 and codes[0] in allowed
    wrong = [] if alike else [f"exit codes {codes}, not {code}"]
    wrong += [f"not said: {phrase}" for phrase in phrases if phrase not in text]
    if not phrases and "[W-" in text:
        wrong.append("a healthy run is blamed")
    print(f"{'wrong' if wrong else 'right'}: {mode} on {nodes} node{'s' if nodes > 1 else ''}",
          flush=True)
    return [f"{mode} on {nodes}: {what}\n{text}" for what in wrong]


def main() -> int:
    modes = sys.argv[2:] or list(CASES)
    wrong = [what for mode in modes for nodes in (1, 2) for what in failures_of(mode, nodes)]
    print("\n".join(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
