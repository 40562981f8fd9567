"""The completion scripts in the shells that exist here: completion_test.py DDPRUN.

bash, zsh and tcsh on a terminal; bash's function also with words as readline splits them.
"""

import fcntl
import os
import pathlib
import pty
import select
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time

LIMIT = 60


def script(program, shell):
    printed = subprocess.run(
        [program, "--print-completion", shell], capture_output=True, text=True, timeout=LIMIT
    )
    assert printed.returncode == 0 and not printed.stderr, printed
    return printed.stdout


def run(words, cwd):
    done = subprocess.run(words, capture_output=True, text=True, timeout=LIMIT, cwd=cwd)
    assert done.returncode == 0 and not done.stderr, done
    return done.stdout


def bash_words(folder, function, words):
    """The completions of the last word."""
    line = " ".join(f"'{word}'" for word in words)
    code = f"""source {folder}/script; COMP_WORDS=({line}); COMP_CWORD={len(words) - 1}
{function}; printf '%s\\n' "${{COMPREPLY[@]}}" """
    return run(["bash", "--norc", "-c", code], folder).split()


def bash_functions(folder):
    def check(words, *expected, without=()):
        found = bash_words(folder, "_ddprun", ["ddprun", *words])
        missing = [word for word in expected if word not in found]
        surplus = [word for word in without if word in found]
        assert not missing and not surplus, (words, found)

    check(["--nproc-per-"], "--nproc-per-node", without=["--nproc_per_node"])
    check(["--nproc_"], "--nproc_per_node", without=["--nproc-per-node"])
    check(["--nproc-per-node", ""], "cpu", "gpu", "auto", without=["N"])
    check(["--restart", "="], "all", "failed")
    check(["--restart", "=", "f"], "failed", without=["all"])
    check(["--rdzv-backend", "c"], "c10d")
    check(["--log-dir", ""], "logs", without=["train.py"])
    check(["-r", "3", "-"], "--tee")
    check(["--standalone", "t"], "train.py", without=["status"])
    check([""], "ps", "status", "train.py", "logs")
    check(["--config", ""], "run.toml", "train.py")
    check(["--config", "=", "ru"], "run.toml", without=["train.py"])
    check(["--console", "="], "raw", "quoted", "prefix", "rank0")
    check(["--warm", "=", "f"], "first", "force", without=["demand"])
    check(["--warm", ""], "train.py", without=["first"])
    check(["config", "--nproc-per-"], "--nproc-per-node")
    check(["config", "--restart", "="], "all", "failed")
    check(["config", ""], "train.py", without=["status"])
    check(["status", "--"], "--json", without=["--nnodes"])
    check(["stop", "x", "--"], "--no-wait", "--all-nodes", without=["--nnodes"])
    check(["explain", ""], "logs", without=["train.py"])
    for behind in (["train.py"], ["--nnodes", "1", "train.py"], ["--nnodes", "=", "1", "--"]):
        assert not bash_words(folder, "_ddprun", ["ddprun", *behind, "--"]), behind


def read_until(terminal, wanted):
    """What the shell shows, up to `wanted`."""
    shown = b""
    deadline = time.monotonic() + LIMIT
    while wanted not in shown:
        ready, _, _ = select.select([terminal], [], [], max(0, deadline - time.monotonic()))
        assert ready, (wanted, shown)
        shown += os.read(terminal, 4096)


def type_on_a_terminal(folder, shell, setup, keys):
    """Types each of `keys` and waits for what the shell must show then."""
    environment = {"PATH": os.environ["PATH"], "TERM": "dumb", "INPUTRC": "/dev/null", "PS1": "> "}
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(folder)
        os.execvpe(shell[0], shell, environment)
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 300, 0, 0))  # one line
    try:
        os.write(terminal, f"{setup}; echo re''ady\n".encode())
        read_until(terminal, b"ready")
        for typed, shown in keys.items():
            os.write(terminal, typed.encode())
            read_until(terminal, shown.encode())
    finally:
        os.close(terminal)
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


KEYS = {
    "ddprun conf\t": "config ",
    "--virt\t": "--virtual-local-rank ",
    "--config ru\t": "run.toml ",
    "--restart=fa\t": "--restart=failed ",
    "--nproc_\t": "--nproc_per_node",
    " 1 tr\t": "train.py ",
}


def bash_on_a_terminal(folder):
    words = ["bash", "--norc", "--noprofile", "-i"]
    setup = "source ./script; bind 'set enable-bracketed-paste off'"
    type_on_a_terminal(folder, words, setup, KEYS)


def other_names(folder, program):
    """Under a link called torchrun there are no commands."""
    link = folder / "torchrun"
    link.symlink_to(program)
    (folder / "script").write_text(script(str(link), "bash"))
    found = bash_words(folder, "_torchrun", ["torchrun", ""])
    assert "train.py" in found and "status" not in found, found


def fish(folder):
    def completions(line):
        code = f"source script.fish; complete -C '{line}'"
        shown = run(["fish", "--no-config", "-c", code], folder)
        return [line.split("\t")[0] for line in shown.splitlines()]

    assert "--nproc-per-node" in completions("ddprun --nproc")
    assert completions("ddprun --restart ") == ["all", "failed"]
    assert "status" in completions("ddprun sta")
    assert "--nproc-per-node" in completions("ddprun config --nproc")
    assert completions("ddprun --config ru") == ["run.toml"]


def zsh(folder):
    run(["zsh", "-f", "-n", "script.zsh"], folder)
    shutil.copy(folder / "script.zsh", folder / "_ddprun")
    setup = "fpath=($PWD $fpath); autoload -Uz compinit; compinit -u -D"
    type_on_a_terminal(folder, ["zsh", "-f", "-i"], setup, KEYS)


def tcsh(folder):
    keys = {
        "ddprun --virt\t": "--virtual-local-rank ",
        "--restart fa\t": "failed ",
        "--config ru\t": "run.toml ",
    }
    type_on_a_terminal(folder, ["tcsh", "-f", "-i"], "set edit; source script.tcsh", keys)


def main():
    program = os.path.abspath(sys.argv[1])
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "train.py").touch()
        (folder / "run.toml").touch()
        (folder / "logs").mkdir()
        (folder / "script").write_text(script(program, "bash"))
        bash_functions(folder)
        bash_on_a_terminal(folder)
        for shell, check in (("zsh", zsh), ("tcsh", tcsh), ("fish", fish)):
            (folder / f"script.{shell}").write_text(script(program, shell))
            if shutil.which(shell):
                check(folder)
                print("checked in", shell)
            else:
                print(shell, "is missing: only printed")
        other_names(folder, program)
    return 0


if not shutil.which("bash"):
    print("no bash")
    sys.exit(77)
sys.exit(main())
