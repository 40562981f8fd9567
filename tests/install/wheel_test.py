"""ddprun in a fresh virtual environment: programs, module, torchrun link.

    wheel_test.py FILES           the wheel of release_test.py
    wheel_test.py --source FILES  `pip install .` in its source archive, which has no git folder
"""

import os
import pathlib
import subprocess
import sys
import tarfile
import tempfile
import zipfile

WORKER = """
import os, sys
import ddprun
place = f"rank {os.environ['RANK']} of {os.environ['WORLD_SIZE']}"
# One write: the workers share a pipe.
os.write(1, f"{place} linked {ddprun.step_done(1)} {sys.prefix}\\n".encode())
assert "torch" not in sys.modules
"""
HUNG = 600  # seconds; on an idle machine the slowest command takes 5
ELF = b"\x7fELF"
SYMBOLS = b"\0.symtab\0.strtab\0"  # the names of sections of a file that was not stripped


def environment():
    """Without what would lead to another environment or another program."""
    return {name: value for name, value in os.environ.items()
            if name not in ("PYTHONPATH", "PYTHONHOME", "PYTHON_EXEC", "VIRTUAL_ENV",
                            "CONDA_PREFIX") and not name.startswith("PET_")}


def run(*words):
    done = subprocess.run(words, check=False, capture_output=True, text=True, timeout=HUNG,
                          env=environment())
    assert done.returncode == 0, f"{words}: exit code {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout


def check_content(wheel):
    with zipfile.ZipFile(wheel) as archive:
        programs = {}
        for name in archive.namelist():
            content = archive.read(name)
            if content.startswith(ELF):
                programs.setdefault(content, []).append(name)
                assert SYMBOLS not in content, f"{name} is not stripped"
        twice = [names for names in programs.values() if len(names) > 1]
        assert not twice, f"a wheel has no links; these are copies: {twice}"
        names = {pathlib.PurePath(name).name for names in programs.values() for name in names}
        assert {"ddprun", "ddprun-rdzvd", "libddprun_worker.so"} <= names, names
        files = archive.namelist()
        assert any(name.endswith("licenses/LICENSE") for name in files), files
        assert "ddprun.pth" in files, files
        assert "ddprun/__main__.py" in files and not any("/torchrun" in name for name in files)


def check_workers(output, venv):
    expected = {f"rank {rank} of 2 linked True {venv}" for rank in range(2)}
    assert set(output.splitlines()) == expected, output


def check_environment(venv, script):
    ddprun, python = venv / "bin/ddprun", venv / "bin/python"
    launch = ("--standalone", "--nproc-per-node=2", script)
    with open(ddprun, "rb") as program:
        assert program.read(4) == ELF, "ddprun is not the program itself"
    check_workers(run(ddprun, *launch), venv)  # without activating the environment
    check_workers(run(python, "-m", "ddprun", *launch), venv)
    assert run(python, "-m", "ddprun", "--version") == run(ddprun, "--version")
    (venv / "bin/torchrun").symlink_to("ddprun")
    check_workers(run(venv / "bin/torchrun", *launch), venv)
    assert "--bind" in run(venv / "bin/ddprun-rdzvd", "--help")
    module = run(python, "-c", "import ddprun; print(ddprun.connected(), ddprun.__file__)")
    assert module.startswith(f"False {venv}"), module


def check_removal(venv):
    run(venv / "bin/python", "-m", "pip", "uninstall", "--quiet", "--yes", "ddprun")
    left = [path for path in venv.rglob("*ddprun*")]
    assert not left, left


def install_from_source(venv, files):
    """As a user does, but with the compiler cache of scripts/test."""
    archive, = files.glob("*.tar.gz")
    with tarfile.open(archive) as content:
        content.extractall(venv.parent)
    tree, = venv.parent.glob("ddprun-*")
    assert not (tree / ".git").exists()
    words = [venv / "bin/python", "-m", "pip", "--disable-pip-version-check", "install", tree,
             "--config-settings", f"build-dir={tree}/build/wheel"]
    done = subprocess.run(words, check=False, capture_output=True, text=True, timeout=900, env={
        **environment(), "CXX": "c++", "CCACHE_BASEDIR": str(tree), "CCACHE_NOHASHDIR": "1",
        "CCACHE_SLOPPINESS": "pch_defines,time_macros"})
    if "No matching distribution found for scikit-build-core" in done.stderr:
        print("pip reaches no package index")
        sys.exit(77)
    assert done.returncode == 0, done.stdout + done.stderr


def install_wheel(venv, files):
    wheel, = files.glob("*.whl")
    check_content(wheel)
    run(venv / "bin/python", "-m", "pip", "install", "--quiet", "--no-index", "--no-deps",
        "--disable-pip-version-check", wheel)


def main():
    files = pathlib.Path(sys.argv[-1])
    if not files.exists():
        print("scripts/release has built nothing")
        sys.exit(77)
    with tempfile.TemporaryDirectory() as folder:
        venv = pathlib.Path(folder).resolve() / "venv"
        run(sys.executable, "-m", "venv", venv)
        if sys.argv[1] == "--source":
            install_from_source(venv, files)
        else:
            install_wheel(venv, files)
        script = venv.parent / "train.py"
        script.write_text(WORKER)
        check_environment(venv, script)
        check_removal(venv)


main()
