"""The Debian package of release_test.py: lintian, then installed, used and purged in a copy of this
system, which is an overlay in a mount namespace of its own.

    deb_test.py FILES
"""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

HUNG = 600  # seconds; on an idle machine the slowest command takes 5
# What dpkg and its triggers write about any package.
BOOKKEEPING = ("var/lib/dpkg/", "var/log/", "var/cache/", "var/lib/systemd/deb-systemd-helper",
               "etc/ld.so.cache", "tmp/", "var/tmp/", "run/")

# One write for each line: the workers share a pipe.
WORKER = """
import ddprun, os
os.write(1, f"{os.environ['RANK']} {ddprun.step_done(1)} {ddprun.__file__}\\n".encode())
"""

# In the namespace: $1 is an empty folder, $2 the package, $3 this script.
PREPARE = r"""
set -eu
mount -t tmpfs none "$1"
mkdir "$1/upper" "$1/work" "$1/root"
mount -t overlay none -o "lowerdir=/,upperdir=$1/upper,workdir=$1/work" "$1/root"
mount -t proc none "$1/root/proc"
mount --rbind /dev "$1/root/dev"
mount -t tmpfs none "$1/root/tmp"
cp "$2" "$1/root/tmp/ddprun.deb"
cp "$3" "$1/root/tmp/test.py"
chroot "$1/root" /usr/bin/python3 /tmp/test.py inside
cd "$1/upper" && find . -mindepth 1 -printf '%y %P\n' >"$1/root/tmp/left"
echo "--- left"
cat "$1/root/tmp/left"
"""


def skip(reason):
    print(reason)
    sys.exit(77)


def run(*words, **more):
    done = subprocess.run(words, check=False, capture_output=True, text=True, timeout=HUNG, **more)
    assert done.returncode == 0, f"{words}: exit code {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout


def inside():
    """As root of the copy: install, use, purge."""
    os.chdir("/tmp")
    environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C.UTF-8", "HOME": "/tmp"}
    run("dpkg", "--install", "/tmp/ddprun.deb", env=environment)
    files = run("dpkg", "--listfiles", "ddprun", env=environment).splitlines()
    assert "/usr/bin/ddprun" in files and "/usr/bin/ddprun-rdzvd" in files, files
    assert "/usr/share/zsh/vendor-completions/_ddprun" in files, files  # where Debian's zsh looks
    pathlib.Path("/tmp/train.py").write_text(WORKER)
    output = run("ddprun", "--standalone", "--nproc-per-node=2", "/tmp/train.py", env=environment)
    module = "/usr/lib/python3/dist-packages/ddprun/__init__.py"
    assert sorted(output.splitlines()) == [f"{rank} True {module}" for rank in "01"], output
    assert "--bind" in run("ddprun-rdzvd", "--help", env=environment)
    assert run("python3", "-m", "ddprun", "--version", env=environment).startswith("ddprun ")
    for page in (name for name in files if name.startswith("/usr/share/man/man")):
        assert page.count("/") == 4 or page.endswith(".gz"), page
    check_unit(environment)
    run("dpkg", "--purge", "ddprun", env=environment)
    print("installed, used, purged")


def check_unit(environment):
    unit = "ddprun-rdzvd.service"
    enabled = pathlib.Path("/etc/systemd/system/multi-user.target.wants") / unit
    assert not enabled.is_symlink(), "the package enables its service"
    if not shutil.which("systemctl"):
        print("no systemd: the unit file is not tried")
        return
    run("systemd-analyze", "verify", unit, env=environment)
    run("systemctl", "enable", unit, env=environment)
    assert enabled.is_symlink()


def left_over(lines):
    """Files beyond dpkg's own; folders and removed names that were not there before, too."""
    for line in lines:
        kind, path = line.split(" ", 1)
        known = any(path.startswith(name) for name in BOOKKEEPING)
        if not known and (kind != "d" or "ddprun" in path):
            yield line


def main():
    if not os.path.exists(sys.argv[1]):
        skip("scripts/release has built nothing")
    package, = pathlib.Path(sys.argv[1]).glob("*.deb")
    if not shutil.which("lintian"):
        skip("no lintian: run scripts/setup --release")
    said = run("lintian", "--fail-on", "error,warning", package,
               env={**os.environ, "LC_ALL": "C.UTF-8"})
    assert not said, said
    if os.geteuid() != 0:
        skip("needs root: mounts an overlay in a mount namespace")
    with tempfile.TemporaryDirectory() as folder:
        probe = subprocess.run(["unshare", "--mount", "mount", "-t", "tmpfs", "none", folder],
                               check=False, capture_output=True, text=True)
        if probe.returncode != 0:
            skip(f"no mount namespaces here: {probe.stderr.strip()}")
        output = run("unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", PREPARE,
                     "sh", folder, package, os.path.abspath(__file__))
    used, left = output.split("--- left\n")
    assert "installed, used, purged" in used, output
    rest = list(left_over(left.splitlines()))
    assert not rest, "purge leaves:\n" + "\n".join(rest)
    print(used.strip())


if sys.argv[1] == "inside":
    inside()
else:
    main()
