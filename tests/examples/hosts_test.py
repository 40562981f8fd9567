#!/usr/bin/env python3
"""examples/hosts on two hosts, which are network namespaces: hosts_test.py DDPRUN"""

import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tests" / "chaos"))
import namespaces  # noqa: E402

DDPRUN = os.path.abspath(sys.argv[1])
EXAMPLE = ROOT / "examples" / "hosts"
SUM = [ROOT / "examples/shell/sum.sh", "1000"]
HUNG = 60  # seconds
EXPECTED = ["rank 0 of 2: sum 250000", "rank 1 of 2: sum 250500"]


def start(network, host, words):
    return subprocess.Popen(
        [*network.prefix(host), *map(str, words)], env={**os.environ, "LAUNCHER": DDPRUN},
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def on_both_hosts(network, words):
    """The lines that each host prints."""
    processes = [start(network, host, words) for host in range(2)]
    try:
        ended = [(process.communicate(timeout=HUNG), process.returncode) for process in processes]
    finally:
        for process in processes:
            process.kill()
            process.wait()
    assert [code for _, code in ended] == [0, 0], ended
    return [output for (output, _), _ in ended]


def main():
    with namespaces.Network(3, 0) as network, tempfile.TemporaryDirectory() as folder:
        hosts = EXAMPLE / "hosts.txt"
        assert hosts.read_text().split() == [network.address(0), network.address(1)]
        by_script = [EXAMPLE / "launch.sh", hosts, "--nproc-per-node=1", *SUM]
        printed = on_both_hosts(network, by_script)
        assert printed == [line + "\n" for line in EXPECTED], printed

        turned = pathlib.Path(folder) / "turned.txt"  # the order of the list is that of the ranks
        turned.write_text("\n".join(reversed(hosts.read_text().split())) + "\n")
        by_script[1] = turned
        printed = on_both_hosts(network, by_script)
        assert printed == [line + "\n" for line in reversed(EXPECTED)], printed

        words = ",".join(hosts.read_text().split())
        printed = on_both_hosts(network, [DDPRUN, f"--hosts={words}", "--nproc-per-node=1", *SUM])
        assert printed == [line + "\n" for line in EXPECTED], printed

        stranger = start(network, 2, by_script)
        _, errors = stranger.communicate(timeout=HUNG)
        assert stranger.returncode == 2, errors
        assert f"none of this host's addresses ({network.address(2)}" in errors, errors


if __name__ == "__main__":
    if reason := namespaces.missing():
        print(f"skipped: {reason}")
        sys.exit(77)
    main()
