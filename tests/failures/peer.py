"""The same cases under torchrun, for the comparison: what its summary says, by the same measure.

Its exit code is always 1 and it has no cause codes. A cause counts as right if the part about the
root cause has the phrase that ddprun's report must have, a culprit if it names that rank.
"""

import re

import outside
from judge import Judgement

ROOT = "Root Cause ("  # of the first observed failure on that node
IGNORED = ("--shutdown-timeout",)  # the cases work without it
UNSUPPORTED = ("--min-uptime", "--hang-timeout", "--finish-timeout")


def command(torchrun: str, case, program: list) -> list:
    options = [option for option in case.options if not option.startswith(IGNORED)]
    return [*case.prefix, torchrun, "--standalone", f"--nproc-per-node={case.ranks}", *options,
            *program]


def judge(case, consoles: list, left: list) -> Judgement:
    text = consoles[0]
    verdict = Judgement()
    _, found, root = text.rpartition(ROOT)  # the last one: another torchrun may be inside
    root += re.sub(r"exitcode +: (\d+)", r"exit code \1", root)
    verdict.left = len(left)
    if case.healthy:
        verdict.culprit = not found
        return verdict
    summary = text.partition("Traceback (most recent call last):\n  File")
    verdict.lines = sum(bool(line.strip()) for line in (summary[1] + summary[2]).splitlines())
    ranks = [int(rank) for rank in re.findall(r"rank\s*: (\d+)", root)]
    wanted = case.culprit if isinstance(case.culprit, tuple) else (case.culprit,)
    verdict.culprit = ranks[:1] == [] if case.culprit is None else set(ranks[:1]) <= set(wanted)
    verdict.culprit = verdict.culprit and bool(found or case.culprit is None)
    verdict.cause = bool(found) and case.says in root
    if not verdict.cause:
        verdict.wrong.append("cause")
    if not verdict.culprit:
        verdict.wrong.append(f"blames {ranks[:1]} instead of {case.culprit}")
    if left:
        verdict.wrong.append("left behind: " + "; ".join(left))
    return verdict


def compare(cases: list, tools, run_all) -> int:
    """Runs the cases that torchrun can be asked for under both, and prints a table."""
    cases = [case for case in cases if case.nodes == 1 and case.outside not in outside.OF_DDPRUN
             and not any(option.startswith(UNSUPPORTED) for option in case.options)]
    torchrun, tools.peer = tools.peer, ""
    own = rows([verdict for verdict in run_all(cases, tools)[0] if not isinstance(verdict[1], str)])
    tools.peer = torchrun
    other = rows([verdict for verdict in run_all(cases, tools)[0]
                  if not isinstance(verdict[1], str)])
    print(f"{'one node':<44}{'ddprun':>10}{'torchrun':>10}")
    for what, value in own.items():
        print(f"{what:<44}{value:>10}{other[what]:>10}")
    return 0


def rows(results: list) -> dict:
    faults = [verdict for case, verdict in results if not case.healthy]
    controls = [verdict for case, verdict in results if case.healthy]
    lengths = [verdict.lines for verdict in faults if verdict.lines] or [0]
    return {
        "injected failures": len(faults),
        "  the report names the right rank, or none": sum(one.culprit for one in faults),
        "  the report says the cause": sum(one.cause for one in faults),
        "  lines of the report, mean": f"{sum(lengths) / len(lengths):.1f}",
        "  processes left behind in": sum(one.left > 0 for one in faults),
        "healthy runs": len(controls),
        "  false alarms": sum(not one.culprit for one in controls),
        "  processes left behind after": sum(one.left > 0 for one in controls),
    }
