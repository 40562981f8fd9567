#!/usr/bin/env python3
"""Runs clang-tidy (.clang-tidy) on the C++ files of the last commit and of the working tree.

clang_tidy.py [--all | FILE...]   at most FILES_MAX files without arguments: 10 s for each
"""

import os
import pathlib
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
SKIPPED = 77
FILES_MAX = 6
LIMIT_S = 300
# Needs torch or a device, or is compiled for another program.
FOREIGN = ("trainer/train/", "trainer/ddp/", "trainer/model/", "trainer/device/")
# As CMake defines them; clang-tidy reads no build folder, so that it works before the first build.
FLAGS = [
    "-std=c++20",
    f"-I{ROOT}",
    '-DDDPRUN_VERSION="0"',
    "-DBOOST_ASIO_SEPARATE_COMPILATION",
    "-DBOOST_ASIO_NO_DEPRECATED",
    "-DSPDLOG_COMPILED_LIB",
    "-DSPDLOG_FMT_EXTERNAL",
    "-DFMT_HEADER_ONLY=1",
]


def skip(reason):
    print(f"skipped: {reason}")
    sys.exit(SKIPPED)


def git(*arguments):
    command = ["git", "-C", str(ROOT), *arguments]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode != 0:
        skip("not a git checkout: name the files, or pass --all")
    return result.stdout.splitlines()


def programs(paths):
    """Sources of the programs and libraries; tests have Catch2's macros."""
    wanted = []
    for path in sorted(set(paths)):
        ours = path.endswith(".cpp") and not path.startswith(("tests/", "bench/", *FOREIGN))
        if ours and (ROOT / path).exists():
            wanted.append(path)
    return wanted


def check(tidy, path):
    command = [tidy, "--quiet", path, "--", *FLAGS]
    result = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=LIMIT_S, check=False
    )
    if result.returncode != 0:
        print(result.stdout)
        print("\n".join(line for line in result.stderr.splitlines() if "error" in line))
    return result.returncode == 0


def main():
    tidy = shutil.which("clang-tidy") or shutil.which("clang-tidy-14")
    if not tidy:
        skip("clang-tidy is not installed")
    if sys.argv[1:] == ["--all"]:
        files = programs(git("ls-files", "*.cpp"))
    elif len(sys.argv) > 1:
        files = sys.argv[1:]
    else:
        files = programs(git("diff", "--name-only", "HEAD~1"))[:FILES_MAX]
        if not files:
            skip("the last commit changes no C++ source of a program")
    wrong = [path for path in files if not check(tidy, path)]
    print(f"{len(files)} files checked, {len(wrong)} with warnings: {' '.join(wrong)}")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    os.chdir(ROOT)
    main()
