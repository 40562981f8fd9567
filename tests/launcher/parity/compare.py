"""What must be alike, and the differences that are meant, with reasons (docs/TORCHRUN.md)."""

import re

from both import UUID

# Variables whose value may differ in every run.
ENVIRONMENT_DIFFERS = {
    "TORCHELASTIC_ERROR_FILE": "names a directory of this run; its end is compared",
    "MASTER_PORT": "a free port, chosen per run",
    "MASTER_ADDR": "torchrun publishes its host name, ddprun the loopback address",
    "TORCHELASTIC_RUN_ID": "a fresh UUID in standalone runs; otherwise compared by its case",
    "OMP_NUM_THREADS": "torchrun: always 1; ddprun: the CPUs of a worker, and 1 with --compat",
    "PYTHONFAULTHANDLER": "ddprun sets it where it is unset",
    "DDPRUN_ROUND": "ddprun's own",
    "DDPRUN_WORKER": "ddprun's own, marks what a worker starts",
    "DDPRUN_WORKER_SOCKET": "ddprun's own, for worker_api",
    "DDPRUN_SURVIVORS": "ddprun's own, with --restart=failed",
    "DDPRUN_LOCAL_RANK": "ddprun's own, with --virtual-local-rank",
    "PROBE_DIR": "this test's own",
}
# Log files that only ddprun writes (docs/EVENTS.md).
OWN_LOGS = ("events.jsonl", "result.json")
# Facts that name this run's own files.
FACTS_DIFFER = {"environment", "ancestors", "directory", "stdin", "stdout", "argv"}
# A tee'd stream: torchrun's worker writes the file, which a thread follows; ddprun's worker writes
# a pipe, which the agent copies to file and console, so that no line is torn and nothing is late.
TEED = (re.compile(r".*/std(out|err)\.log"), re.compile(r"pipe:\[\d+\]"))


def localised(text):
    """The test's folders are called after the launcher, and so may be the checkout's."""
    return re.sub(r"/(torchrun|ddprun)\b", "/*", text)


def environment_differences(theirs, ours):
    for name in sorted(set(theirs) | set(ours)):
        if name in ENVIRONMENT_DIFFERS:
            continue
        left, right = theirs.get(name), ours.get(name)
        if left is not None and localised(left) == localised(right or ""):
            continue
        yield f"environment {name}: torchrun {left!r}, ddprun {right!r}"


def error_file_differences(theirs, ours):
    ends = [
        facts["environment"]["TORCHELASTIC_ERROR_FILE"].split("/")[-3:]
        for facts in (theirs, ours)
    ]
    if ends[0] != ends[1]:
        yield f"error file: torchrun {ends[0]}, ddprun {ends[1]}"


def fact_differences(theirs, ours, meant):
    yield from environment_differences(theirs["environment"], ours["environment"])
    yield from error_file_differences(theirs, ours)
    for name in sorted(set(theirs) - FACTS_DIFFER - set(meant)):
        if theirs[name] != ours[name]:
            yield f"{name}: torchrun {theirs[name]}, ddprun {ours[name]}"
    for name in ("argv", "directory", "stdin", "stdout"):
        if name in meant:
            continue
        left = [localised(text) for text in as_list(theirs[name])]
        right = [localised(text) for text in as_list(ours[name])]
        if name == "stdout" and TEED[0].fullmatch(left[0]) and TEED[1].fullmatch(right[0]):
            continue
        if [without_random(text) for text in left] != [without_random(text) for text in right]:
            yield f"{name}: torchrun {left}, ddprun {right}"


def as_list(value):
    return value if isinstance(value, list) else [value]


def without_random(text):
    return re.sub(r"[^/]*_[a-z0-9_]{8}/attempt", "RUN/attempt", text)


def log_differences(theirs, ours):
    for name in sorted(set(theirs.logs) | set(ours.logs)):
        if name.endswith("error.json") or "/filtered_" in name:
            continue  # a time in it, lines of the ranks in any order: their cases look into them
        if name in OWN_LOGS and name not in theirs.logs:
            continue
        if theirs.logs.get(name) != ours.logs.get(name):
            yield f"log {name}: torchrun {theirs.logs.get(name)}, ddprun {ours.logs.get(name)}"


def console_differences(theirs, ours, may_lose_lines):
    for stream, marker in (("out", "probe-out"), ("err", "probe-err")):
        left, right = theirs.lines(stream, marker), report_free(ours.lines(stream, marker))
        left = report_free(left)
        if left == right or (may_lose_lines and set(left) <= set(right)):
            continue
        yield f"console {stream}: torchrun {left}, ddprun {right}"


def report_free(lines):
    """Without the lines that a failure report quotes."""
    return [line for line in lines if " | " not in line and not line.startswith("  evidence ")]


def code_differences(theirs, ours, expected):
    if ours.code != expected:
        yield f"exit code: ddprun {ours.code}, expected {expected}"
    if (theirs.code == 0) != (expected == 0):
        yield f"exit code: torchrun {theirs.code}, ddprun {ours.code}"
    if "Traceback" in ours.err and "Traceback" not in theirs.err:
        yield "a stack trace of the launcher"


def ancestor_differences(outcome, name, generations):
    """ddprun's front and guard are above the agent, which is a worker's parent."""
    for facts in outcome.probes.values():
        if facts["ancestors"].index(outcome.launcher_pid) != generations:
            yield f"{name}: {outcome.launcher_pid} is not in its place in {facts['ancestors']}"


def differences(case, theirs, ours, may_lose_lines):
    yield from code_differences(theirs, ours, case.code)
    if set(theirs.probes) != set(ours.probes):
        yield f"workers: torchrun {sorted(theirs.probes)}, ddprun {sorted(ours.probes)}"
    for key in sorted(set(theirs.probes) & set(ours.probes)):
        for difference in fact_differences(theirs.probes[key], ours.probes[key], case.differs):
            yield f"rank {key[0]}, restart {key[1]}: {difference}"
    yield from ancestor_differences(theirs, "torchrun", 0)
    yield from ancestor_differences(ours, "ddprun", 2)
    yield from log_differences(theirs, ours)
    yield from console_differences(theirs, ours, may_lose_lines)


def is_uuid(text):
    return UUID.fullmatch(text) is not None
