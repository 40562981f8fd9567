"""scripts/release in a copy of this tree: what it builds lies in WORK/files for the other tests.

    release_test.py build SOURCE WORK    the copy is WORK/tree
    release_test.py again SOURCE WORK    a clone of the copy, compiled afresh, gives the same bytes
"""

import hashlib
import os
import pathlib
import shutil
import subprocess
import sys

MEGABYTE = 1_000_000
# Fixed, so that two copies of the same tree are the same commit.
COMMIT = {f"GIT_{who}_{what}": value for who in ("AUTHOR", "COMMITTER") for what, value in (
    ("NAME", "test"), ("EMAIL", "test@localhost"), ("DATE", "2026-01-02T03:04:05+0000"))}
GIT = ["git", "-c", "init.defaultBranch=main", "-c", "core.hooksPath=/dev/null",
       "-c", "commit.gpgSign=false"]


def skip(reason):
    print(reason)
    sys.exit(77)


def git(folder, *words):
    subprocess.run([*GIT, *words], cwd=folder, env={**os.environ, **COMMIT}, check=True,
                   stdout=subprocess.DEVNULL)


def copy_tree(source, target):
    """Tracked files and those that git would add, as one commit."""
    listed = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                            cwd=source, check=False, capture_output=True, text=True)
    if listed.returncode != 0:
        skip(f"{source} is not a git checkout")
    shutil.rmtree(target, ignore_errors=True)
    for name in filter(None, listed.stdout.split("\0")):
        path = target / name
        if (source / name).is_file():
            path.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source / name, path)
    git(target, "init", "--quiet")
    git(target, "add", "--all")
    git(target, "commit", "--quiet", "--message", "test: a release")
    (target / ".venv-release").symlink_to(source / ".venv-release")


def release(tree, files, **variables):
    return subprocess.run([tree / "scripts/release", files], check=False, capture_output=True,
                          text=True, timeout=1800, env={**os.environ, **variables})


def built(tree, files, **variables):
    shutil.rmtree(files, ignore_errors=True)
    done = release(tree, files, **variables)
    assert done.returncode == 0, f"exit code {done.returncode}:\n{done.stdout}{done.stderr}"
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in files.iterdir()}


def check_refusals(tree):
    (tree / "forgotten.txt").write_text("not committed\n")
    done = release(tree, tree / "build/refused")
    assert done.returncode == 2 and done.stderr.count("\n") == 1, done.stderr
    assert "not committed" in done.stderr, done.stderr
    (tree / "forgotten.txt").unlink()
    done = release(tree, tree / "scripts")
    assert done.returncode == 2 and "is not empty" in done.stderr, done.stderr


def check_files(tree, files):
    sums = built(tree, files)
    suffixes = sorted(name[name.index("ddprun") + 6:] for name in sums if name != "SHA256SUMS")
    assert len(suffixes) == 4, suffixes
    subprocess.run(["sha256sum", "--check", "--quiet", "SHA256SUMS"], cwd=files, check=True)
    wheel, = files.glob("ddprun-*-py3-none-manylinux_2_*.whl")
    assert wheel.stat().st_size <= 6 * MEGABYTE, wheel.stat().st_size
    tools = tree / ".venv-release/bin"
    shown = subprocess.run([tools / "auditwheel", "show", wheel], check=True, capture_output=True,
                           text=True).stdout
    tag = wheel.stem.split("-")[-1]  # what its programs need of glibc, neither less nor more
    assert f'constrains the platform tag to "{tag}"' in " ".join(shown.split()), shown
    changes, = files.glob("*-changes.md")
    assert changes.read_text().startswith("One machine"), changes.read_text()[:80]
    print(*sorted(sums), sep="\n")


def check_same(first, second):
    assert first.keys() == second.keys(), (first.keys(), second.keys())
    different = [name for name in first if first[name] != second[name]]
    assert not different, f"two builds of one commit differ: {different}"


def main():
    mode, source, work = sys.argv[1], pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3])
    if mode == "build":
        shutil.rmtree(work, ignore_errors=True)
    if not (source / ".venv-release/bin/auditwheel").exists():
        skip("no .venv-release: run scripts/setup --release")
    if mode == "build":
        copy_tree(source, work / "tree")
        check_refusals(work / "tree")
        check_files(work / "tree", work / "files")
    else:
        first = {path.name: hashlib.sha256(path.read_bytes()).hexdigest()
                 for path in (work / "files").iterdir()}
        elsewhere = work / "elsewhere/a longer name"
        shutil.rmtree(elsewhere, ignore_errors=True)
        git(work, "clone", "--quiet", work / "tree", elsewhere)
        (elsewhere / ".venv-release").symlink_to(source / ".venv-release")
        # Objects out of the user's compiler cache would be the same whatever the compiler does.
        shutil.rmtree(work / "cache", ignore_errors=True)
        check_same(first, built(elsewhere, work / "again",
                                CCACHE_DIR=str(work / "cache")))


main()
