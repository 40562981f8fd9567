#!/usr/bin/env python3
"""Runs clang-tidy 14 (.clang-tidy) on the C++ sources of the programs and libraries.

clang_tidy.py            the sources that the working tree and the last commits change, and one that
                         includes each changed header; the latest FILES_MAX, as each takes 10 s
clang_tidy.py --all      all sources: 20 min on two cores
clang_tidy.py FILE...    these
"""

import concurrent.futures
import os
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
SKIPPED = 77
FILES_MAX = 8
COMMITS_MAX = 4
LIMIT_S = 300
# Other versions have other checks, whose exclusions .clang-tidy does not know.
VERSION = "version 14."
# Needs torch, a device, an installed ddprun or a file that the build makes, or is compiled for
# another program.
FOREIGN = (
    "agent/warm/hook.cpp",
    "examples/",
    "launcher/workers/command.cpp",
    "trainer/train/",
    "trainer/ddp/",
    "trainer/model/",
    "trainer/device/",
    "trainer/main.cpp",
)
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
    "-DBOOST_PROCESS_V2_SEPARATE_COMPILATION",
]


def skip(reason):
    print(f"skipped: {reason}")
    sys.exit(SKIPPED)


def find_tidy():
    for name in ("clang-tidy-14", "clang-tidy"):
        path = shutil.which(name)
        if path and VERSION in subprocess.run([path, "--version"], **TEXT).stdout:
            return path
    return skip("clang-tidy 14 is not installed")


TEXT = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "check": False}


def git(*arguments):
    result = subprocess.run(["git", "-C", str(ROOT), *arguments], **TEXT)
    if result.returncode != 0:
        skip("not a git checkout: name the files, or pass --all")
    return result.stdout.splitlines()


def is_checked(path):
    """Tests and benchmarks are not: they have Catch2's macros."""
    return path.endswith(".cpp") and not path.startswith(("tests/", "bench/", *FOREIGN))


def sources():
    files = git("ls-files", "*.cpp")
    return [path for path in files if is_checked(path) and (ROOT / path).exists()]


def includer_of(header, everything, texts):
    """A source that includes `header`, directly if there is one; None: only tests do."""
    line = re.compile(rf'^#include "{re.escape(header)}"', re.MULTILINE)
    found = [path for path in texts if line.search(texts[path])]
    own = header.removesuffix(".hpp") + ".cpp"
    direct = sorted((path for path in found if path in everything), key=lambda path: path != own)
    if direct:
        return direct[0]
    rest = {path: text for path, text in texts.items() if path not in found}
    through = (includer_of(path, everything, rest) for path in found if path.endswith(".hpp"))
    return next((path for path in through if path), None)


def changed_files():
    """Latest change first. A shallow clone has fewer commits."""
    changed = git("diff", "--name-only", "HEAD")
    known = len(git("rev-list", f"--max-count={COMMITS_MAX + 1}", "--first-parent", "HEAD"))
    for back in range(1, known):
        changed += git("diff", "--name-only", f"HEAD~{back}", f"HEAD~{back - 1}")
    return list(dict.fromkeys(changed))


def changed_sources():
    everything = sources()
    headers = [path for path in git("ls-files", "*.hpp") if (ROOT / path).exists()]
    texts = {path: (ROOT / path).read_text() for path in everything + headers}
    wanted = []
    for path in changed_files():
        if path in headers:
            path = includer_of(path, everything, texts)
        if path in everything and path not in wanted:
            wanted.append(path)
    return wanted


def check(tidy, path):
    """The warnings in `path` and in the headers of ours that it includes; empty: none."""
    command = [tidy, "--quiet", path, "--", *FLAGS]
    try:
        result = subprocess.run(command, cwd=ROOT, timeout=LIMIT_S, **TEXT)
    except subprocess.TimeoutExpired:
        return f"{path}: clang-tidy was not done after {LIMIT_S} s"
    if result.returncode == 0:
        return ""
    errors = [line for line in result.stderr.splitlines() if "error" in line]
    return "\n".join([f"{path}:", result.stdout, *errors])


def main():
    tidy = find_tidy()
    left_out = 0
    if sys.argv[1:] == ["--all"]:
        files = sources()
    elif len(sys.argv) > 1:
        files = sys.argv[1:]
    else:
        files = changed_sources()
        left_out = max(0, len(files) - FILES_MAX)
        files = files[:FILES_MAX]
        if not files:
            skip("the last commits change no C++ source of a program")
    wrong = []
    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        for path, warnings in zip(files, pool.map(lambda path: check(tidy, path), files)):
            if warnings:
                wrong.append(path)
                print(warnings, flush=True)
    rest = f", {left_out} more were changed" if left_out else ""
    print(f"{len(files)} files checked{rest}, {len(wrong)} with warnings: {' '.join(wrong)}")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
