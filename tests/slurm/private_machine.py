"""A machine within the machine: namespaces of the test's own for network, processes and mounts.

Nothing in it meets what runs outside: names and addresses are its own, and when its first process
ends, however it ends, the kernel ends all others. Its folder is a tmpfs that goes with it.
"""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import threading
import time

SKIPPED = 77
INSIDE = "--inside"
UNSHARE = ["unshare", "--mount", "--net", "--uts", "--pid", "--fork", "--kill-child",
           "--mount-proc"]
HOSTS = {"head": "10.77.0.1", "node01": "10.77.0.11", "node02": "10.77.0.12"}
POLL_SECONDS = 0.05
# A scheduler starts a dozen programs before the first worker: 20 s where a core has 20 to run.
HUNG_SECONDS = 120


def enter(programs: list[str], needs_root: bool = False) -> pathlib.Path:
    """Returns inside, with the folder; skips the test where that is not to be had. A user is root
    inside, which is not enough for every program."""
    if len(sys.argv) > 1 and sys.argv[1] == INSIDE:
        folder = pathlib.Path(sys.argv[2])
        del sys.argv[1:3]
        prepare(folder)
        return folder
    missing = [name for name in ["unshare", "ip", "mount", *programs] if not find(name)]
    if missing:
        skip(f"not installed: {', '.join(missing)} (scripts/setup --schedulers)")
    if needs_root and os.geteuid() != 0:
        skip("several nodes on one machine need root")
    own_user = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    command = [*UNSHARE, *own_user]
    probe = subprocess.run([*command, "sh", "-ec", "mount -t tmpfs none /mnt; ip link set lo up"],
                           capture_output=True, text=True, timeout=HUNG_SECONDS)
    if probe.returncode != 0:
        skip(f"no namespaces here: {(probe.stderr.strip() or 'unshare failed').splitlines()[-1]}")
    folder = tempfile.mkdtemp(prefix="ddprun-schedulers-")
    leave_behind_nothing(folder)
    # exec: the signal that ends this process ends the namespaces.
    os.execvp(command[0], [*command, sys.executable, sys.argv[0], INSIDE, folder, *sys.argv[1:]])


def leave_behind_nothing(folder: str) -> None:
    """A child outside removes the folder when this process ends: all in it was the tmpfs's."""
    watch, held = os.pipe()
    if os.fork() == 0:
        os.close(held)
        for stream in (0, 1, 2):
            os.close(stream)
        os.setsid()
        os.read(watch, 1)
        os.rmdir(folder)
        os._exit(0)
    os.close(watch)
    os.set_inheritable(held, True)  # by unshare alone: the test closes it


def find(name: str) -> str | None:
    return shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")


def skip(reason: str) -> None:
    print(f"skipped: {reason}")
    sys.exit(SKIPPED)


def prepare(folder: pathlib.Path) -> None:
    os.closerange(3, 64)
    os.environ["PATH"] += ":/usr/sbin:/sbin"
    run("mount", "-t", "tmpfs", "-o", "mode=755", "none", str(folder))
    run("hostname", "head")
    run("ip", "link", "set", "lo", "up")
    run("ip", "link", "add", "wire0", "type", "veth", "peer", "name", "wire1")
    for name in ("wire0", "wire1"):
        run("ip", "link", "set", name, "up")
    for address in HOSTS.values():
        run("ip", "address", "add", f"{address}/24", "dev", "wire0")
    names = folder / "hosts"
    lines = ["127.0.0.1 localhost", *(f"{address} {name}" for name, address in HOSTS.items())]
    names.write_text("\n".join(lines) + "\n")
    run("mount", "--bind", str(names), "/etc/hosts")


def run(*words: str) -> None:
    subprocess.run(words, check=True, timeout=HUNG_SECONDS)


def wait_for(what: str, condition, seconds: float = HUNG_SECONDS):
    """What `condition` returns once it is true."""
    deadline = time.monotonic() + seconds
    while not (value := condition()):
        if time.monotonic() > deadline:
            raise TimeoutError(f"not within {seconds} s: {what}")
        threading.Event().wait(POLL_SECONDS)
    return value
