#!/usr/bin/env python3
"""Checks the model of fail-over with spin: all orders of its steps, without hashing states away.

usage: model_test.py [WORDS]
       model_test.py --trace WORDS   also prints the steps of each error
WORDS: only the cases whose name contains them; without any, DDPRUN_TEST_LONG=1 adds the long ones.
The rules must hold; each rule that is left out must be found; what the model is about must be
reachable. Needs spin and a C compiler (exit 77 without).
"""

import dataclasses
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

SKIPPED = 77
MODEL = pathlib.Path(__file__).resolve().with_name("failover.pml")
LIMIT_S = 300
MEMORY_MB = 2000
HOLDS = "holds"
FAILS = "fails"
SPARE = ("FIRST=3",)  # agents 0 and 1 are in the first round, agent 2 is not


@dataclasses.dataclass(frozen=True)
class Case:
    name: str
    expected: str
    defines: tuple[str, ...]
    is_long: bool = False


CASES = (
    Case("three members, two die", HOLDS, ()),
    Case("two members and a spare node, two die", HOLDS, SPARE, True),
    Case("reachable: a takeover after a refusal settles", FAILS, ("WITNESS=1",)),
    Case("reachable: a takeover after silence with two of three settles", FAILS, ("WITNESS=2",)),
    Case("reachable: a round after an unsettled round settles", FAILS, ("WITNESS=3",), True),
    Case("reachable: a second takeover settles", FAILS, ("WITNESS=4",), True),
    Case("reachable: what a dead author sent to one of two continues", FAILS,
         ("WITNESS=5", "DEATHS=1"), True),
    Case("found: a candidate counts the deaths of others", FAILS, ("DEATHS_COUNT", "ROUNDS=3")),
    Case("found: a round need not settle", FAILS, ("NO_SETTLE",), True),
    Case("found: two worlds if a round need not settle", FAILS, ("NO_SETTLE", "WORLDS_ONLY")),
    Case("found: newcomers vote", FAILS, ("NEWCOMERS_VOTE", "ROUNDS=3") + SPARE, True),
    Case("found: an agent that has left counts as ended", FAILS, ("EOF_COUNTS",), True),
    Case("found: two worlds if it does", FAILS, ("EOF_COUNTS", "WORLDS_ONLY")),
    Case("found: a dead agent with another author's round counts as ended", FAILS,
         ("ANY_END_COUNTS", "ROUNDS=3"), True),
    Case("found: one of two settles its rounds alone", FAILS, ("TIE_SETTLES", "ROUNDS=3") + SPARE,
         True),
    Case("found: two worlds if it does so", FAILS, ("TIE_SETTLES", "WORLDS_ONLY") + SPARE),
    Case("found: a member votes for two successors", FAILS, ("DOUBLE_VOTE",), True),
    Case("found: claims alone settle a round", FAILS, ("INFER_SETTLED",), True),
)


def main() -> int:
    words = [word for word in sys.argv[1:] if word != "--trace"]
    for program in ("spin", "gcc"):
        if shutil.which(program) is None:
            print(f"skipped: no {program}: run scripts/setup --schedulers")
            return SKIPPED
    every = bool(words) or "DDPRUN_TEST_LONG" in os.environ
    cases = [case for case in CASES
             if (every or not case.is_long) and all(word in case.name for word in words)]
    failed = 0
    for case in cases:
        with tempfile.TemporaryDirectory() as folder:
            failed += not passes(case, pathlib.Path(folder))
    print(f"{len(cases) - failed} passed" + (f", {failed} failed" if failed else ""))
    return 1 if failed or not cases else 0


def passes(case: Case, folder: pathlib.Path) -> bool:
    defines = [f"-D{define}" for define in case.defines]
    started = time.monotonic()
    run(folder, "spin", *defines, "-a", str(MODEL))
    # One process, so nothing to reduce; a depth that is exceeded is an error (-b), not a gap.
    # Where an error is found at once, compiling takes longer than searching.
    optimization = "-O2" if case.expected == HOLDS else "-O0"
    run(folder, "gcc", optimization, "-w", "-DSAFETY", "-DNOREDUCE", f"-DMEMLIM={MEMORY_MB}",
        "-o", "pan", "pan.c")
    output = run(folder, "./pan", "-b", "-m20000", "-w24")
    outcome = verdict(output)
    passed = outcome == case.expected
    numbers = ", ".join(number(pattern, output, unit) for pattern, unit in (
        (r"(\d[\d.e+]*) states, stored", "states"), (r"depth reached (\d+)", "deep"),
        (r"([\d.]+)\s+total actual memory", "MB")))
    print(f"{'ok  ' if passed else 'FAIL'} {case.name}: {numbers}, "
          f"{time.monotonic() - started:.1f} s", flush=True)
    if not passed:
        print(f"     expected: {case.expected}; {outcome}\n{output}")
    if outcome == FAILS and ("--trace" in sys.argv or not passed):
        print(run(folder, "spin", *defines, "-t", "-k", MODEL.name + ".trail", str(MODEL)))
    return passed


def verdict(output: str) -> str:
    errors = re.search(r"errors: (\d+)", output)
    if errors is None or re.search(r"out of memory|too small", output):
        return "the search is incomplete"
    if errors[1] == "0":
        if "not completed" in output:
            return "the search is incomplete"
        return HOLDS
    return FAILS if "assertion violated" in output else "another error than an assertion"


def number(pattern: str, output: str, unit: str) -> str:
    found = re.search(pattern, output)
    return f"{found[1] if found else '?'} {unit}"


def run(folder: pathlib.Path, *command: str) -> str:
    done = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, timeout=LIMIT_S, check=False,
                          env={**os.environ, "LC_ALL": "C"})
    # spin -t and pan end with other codes than 0 when there is an error to show.
    if done.returncode != 0 and command[0] in ("spin", "gcc") and "-t" not in command:
        raise SystemExit(f"{' '.join(command)}\n{done.stdout}")
    return done.stdout


if __name__ == "__main__":
    sys.exit(main())
