"""The Debian package of release_test.py in a minimal Debian that debootstrap makes: nothing but the
package and what it depends on, no Python, no service manager.

    deb_root_test.py FILES
"""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

HUNG = 1200  # seconds; debootstrap takes one minute with a fast mirror
MIRROR = os.environ.get("DEBIAN_MIRROR", "http://deb.debian.org/debian")
# What dpkg, apt and their triggers write about any package, and the mounts.
BOOKKEEPING = ("var/lib/dpkg", "var/lib/apt", "var/cache", "var/log", "etc/ld.so.cache", "tmp",
               "run", "proc", "dev")
SHELLS = ("bash-completion/completions/ddprun", "zsh/vendor-completions/_ddprun",
          "fish/vendor_completions.d/ddprun.fish")
MANUALS = ("man/man1/ddprun.1.gz", "man/man1/ddprun-rdzvd.1.gz")
# In a mount namespace: $1 is the root, the rest a command in it.
INSIDE = """
set -eu
root=$1
shift
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"
mount -t tmpfs tmpfs "$root/run"
exec chroot "$root" env --ignore-environment PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root \
  LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive "$@"
"""


def skip(reason):
    print(reason)
    sys.exit(77)


def inside(root, *words):
    done = subprocess.run(["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c",
                           INSIDE, "sh", root, *words], check=False, capture_output=True,
                          text=True, timeout=HUNG, stdin=subprocess.DEVNULL)
    assert done.returncode == 0, f"{words}: exit code {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout


def codename():
    with open("/etc/os-release", encoding="utf-8") as file:
        facts = dict(line.rstrip().replace('"', "").split("=", 1) for line in file if "=" in line)
    if facts.get("ID") != "debian":
        skip("not a Debian: the package is for the one that it is built on")
    return facts["VERSION_CODENAME"]


def dependencies(package):
    field = subprocess.run(["dpkg-deb", "--field", package, "Depends"], check=True,
                           capture_output=True, text=True).stdout
    return [part.split()[0] for part in field.split(",")]


def make_root(root, package):
    done = subprocess.run(["debootstrap", "--variant=minbase",
                           f"--include={','.join(dependencies(package))}", codename(), root,
                           MIRROR], check=False, capture_output=True, text=True, timeout=HUNG,
                          stdin=subprocess.DEVNULL)
    if done.returncode != 0:
        last = (done.stdout + done.stderr).strip().splitlines()[-1:]
        skip(f"debootstrap made no root, is a mirror in reach? {''.join(last)}")


def files(root):
    """All but what dpkg and apt keep for themselves."""
    listed = set()
    for folder, folders, names in os.walk(root):
        below = os.path.relpath(folder, root)
        folders[:] = [name for name in folders
                      if os.path.normpath(f"{below}/{name}") not in BOOKKEEPING]
        listed.update(os.path.normpath(f"{below}/{name}") for name in [*folders, *names])
    return listed - set(BOOKKEEPING)


def use(root):
    assert inside(root, "ddprun", "--version").startswith("ddprun ")
    ranks = inside(root, "ddprun", "--standalone", "--nproc-per-node=2", "sh", "-c", "echo $RANK")
    assert sorted(ranks.split()) == ["0", "1"], ranks
    assert "--bind" in inside(root, "ddprun-rdzvd", "--help")
    for name in SHELLS + MANUALS:
        assert (root / "usr/share" / name).is_file(), name
    assert (root / "usr/lib/systemd/system/ddprun-rdzvd.service").is_file()
    assert not any((root / "usr/bin").glob("python3*")), "the package depends on Python"


def main():
    if not os.path.exists(sys.argv[1]):
        skip("scripts/release has built nothing")
    package, = pathlib.Path(sys.argv[1]).glob("*.deb")
    if os.geteuid() != 0 or not shutil.which("debootstrap"):
        skip("needs root and debootstrap: apt-get install debootstrap")
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder) / "root"
        make_root(root, package)
        before = files(root)
        shutil.copy(package, root / "tmp/ddprun.deb")
        inside(root, "dpkg", "--install", "/tmp/ddprun.deb")
        use(root)
        inside(root, "apt-get", "purge", "--yes", "ddprun")
        left = sorted(files(root) - before)
        assert not left, "purge leaves:\n" + "\n".join(left)
    print("installed, used, purged")


main()
