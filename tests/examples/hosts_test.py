#!/usr/bin/env python3
"""examples/hosts on two hosts, which are network namespaces: hosts_test.py DDPRUN"""

import os
import pathlib
import shutil
import signal
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
    path = f"{os.path.dirname(DDPRUN)}:{os.environ['PATH']}"
    return subprocess.Popen(
        [*network.prefix(host), *map(str, words)], env={**os.environ, "PATH": path},
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


SSH = """#!/bin/sh
# ssh -T -o OPTION HOST COMMAND, where hosts are network namespaces. Keeps what passes through it.
shift 3
case $1 in {cases} esac
export XDG_RUNTIME_DIR={folder}/$1
if ! [ -e {folder}/$1 ]; then
  mkdir {folder}/$1
  read -r line
  printf '%s\\n' "$line" >{folder}/$1.secret
  printf '%s\\n' "$line" | $host sh -c "$2"
  exit
fi
exec $host sh -c "$2"
"""
# What every user sees of the processes, the one that starts them included.
LOOK = ("cat /proc/[0-9]*/cmdline /proc/[0-9]*/environ >\"$XDG_RUNTIME_DIR.seen\" 2>/dev/null;"
        "echo \"$1\"")


def through_ssh(network, folder, hosts):
    """start.sh starts the run on both hosts, with a secret that is seen nowhere."""
    names = hosts.read_text().split()
    tools = folder / "tools"
    tools.mkdir()
    (tools / "ddprun").symlink_to(DDPRUN)
    cases = " ".join(f"{name}) host='{' '.join(network.prefix(number))}' ;;"
                     for number, name in enumerate(names))
    (tools / "ssh").write_text(SSH.format(cases=cases, folder=folder))
    (tools / "ssh").chmod(0o755)
    environment = {**os.environ, "PATH": f"{tools}:{os.environ['PATH']}"}
    word = "a 'b' $PWD \\"
    started = [EXAMPLE / "start.sh", hosts, "--verbose", f"--log-dir={folder}/logs", "-t3",
               "--no-python", "sh", "-c", LOOK, "sh", word]
    done = subprocess.run(started, env=environment, stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, timeout=HUNG)
    assert done.returncode == 0, done
    assert done.stdout.count(word) == 2, done
    assert done.stderr.count("links: encrypted") == 2, done
    kept = [folder / f"{name}.secret" for name in names]
    secret = kept[0].read_text().strip()
    assert len(secret) == 44 and kept[1].read_text().strip() == secret
    assert b"XDG_RUNTIME_DIR" in (folder / f"{names[0]}.seen").read_bytes()
    for path in folder.rglob("*"):
        if path.is_file() and path not in kept and not path.is_symlink():
            assert secret[:20].encode() not in path.read_bytes(), path
    assert secret[:20] not in done.stdout + done.stderr, done
    os.mkfifo(folder / "never")
    waits = ["sh", "-c", f"echo up; read line <{folder}/never"]
    stop_through_ssh(folder, names, [*started[:6], *waits], environment)


def stop_through_ssh(folder, names, started, environment):
    for name in names:
        shutil.rmtree(folder / name)
    run = subprocess.Popen(started, env=environment, stdin=subprocess.DEVNULL, text=True,
                           stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    try:
        assert [run.stdout.readline().strip()[-2:] for _ in names] == ["up", "up"]
        run.send_signal(signal.SIGTERM)
        run.communicate(timeout=HUNG)
        assert run.returncode == 128 + signal.SIGTERM, run.returncode
    finally:
        run.kill()
        run.wait()


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

        through_ssh(network, pathlib.Path(folder), hosts)

        stranger = start(network, 2, by_script)
        _, errors = stranger.communicate(timeout=HUNG)
        assert stranger.returncode == 2, errors
        assert f"none of this host's addresses ({network.address(2)}" in errors, errors


if __name__ == "__main__":
    namespaces.enter()
    if reason := namespaces.missing():
        print(f"skipped: {reason}")
        sys.exit(77)
    main()
