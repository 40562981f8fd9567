"""The report about real Gloo workers of which rank 1 is the culprit, on one node and on two.

    gloo_culprit_test.py DDPRUN [MODE...]

On one node they start from a template, so that torch is imported once; with DDPRUN_TEST_LONG=1 also
without one.
"""

import concurrent.futures
import os
import pathlib
import socket
import subprocess
import sys

WORKER = str(pathlib.Path(__file__).with_name("gloo_culprit_worker.py"))
SECONDS = 240
WARM = ["--warm=first,force", "--preload=torch,torch.distributed"]
FORMS = ["one node, warm", "two nodes"]
if os.environ.get("DDPRUN_TEST_LONG"):
    FORMS.append("one node, cold")

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
    environment = {**os.environ, "GLOO_SOCKET_IFNAME": "lo", "PYTHON_EXEC": sys.executable}
    command = [sys.argv[1], *arguments, WORKER, mode]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                            stdin=subprocess.DEVNULL, env=environment)


def run(mode: str, form: str) -> tuple[list[int], list[str]]:
    """Exit codes and consoles."""
    if form != "two nodes":
        warm = WARM if form.endswith("warm") else []
        all_arguments = [["--standalone", "--nproc-per-node=3", *warm]]
    else:
        endpoint = f"--rdzv-endpoint=127.0.0.1:{free_port()}"
        all_arguments = [["--nnodes=2", f"--node-rank={rank}", endpoint, "--nproc-per-node=1"]
                         for rank in range(2)]
    launchers = [start(arguments, mode) for arguments in all_arguments]
    texts = [launcher.communicate(timeout=SECONDS)[0] for launcher in launchers]
    return [launcher.returncode for launcher in launchers], texts


def failures_of(mode: str, form: str) -> list[str]:
    code, phrases = CASES[mode]
    codes, texts = run(mode, form)
    text = "".join(texts)
    allowed = code if isinstance(code, tuple) else (code,)
    alike = len(set(codes)) == 1 and codes[0] in allowed
    wrong = [] if alike else [f"exit codes {codes}, not {code}"]
    wrong += [f"not said: {phrase}" for phrase in phrases if phrase not in text]
    if form.endswith("warm") and "[WARM] all 3 ranks" not in text:
        wrong.append("not warm")
    if not phrases and "[W-" in text:
        wrong.append("a healthy run is blamed")
    print(f"{'wrong' if wrong else 'right'}: {mode}, {form}", flush=True)
    return [f"{mode}, {form}: {what}\n{text}" for what in wrong]


def main() -> int:
    modes = sys.argv[2:] or list(CASES)
    cases = [(mode, form) for mode in modes for form in FORMS]
    with concurrent.futures.ThreadPoolExecutor(2) as pool:  # they wait for Gloo's time-out
        wrong = [what for case in pool.map(lambda one: failures_of(*one), cases) for what in case]
    print("\n".join(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
