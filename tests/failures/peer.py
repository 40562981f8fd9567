"""The same cases under torchrun, for the comparison: what its summary says, by the same measure.

Its exit code is always 1 and it has no cause codes. A cause counts as right if the part about the
root cause has the phrase that ddprun's report must have, a culprit if it names that rank.
"""

import re

from judge import Judgement

ROOT = "Root Cause ("  # of the first observed failure on that node
UNSUPPORTED = ("--min-uptime", "--shutdown-timeout")


def command(torchrun: str, case, program: list) -> list:
    options = [option for option in case.options if not option.startswith(UNSUPPORTED)]
    return [*case.prefix, torchrun, "--standalone", f"--nproc-per-node={case.ranks}", *options,
            *program]


def judge(case, consoles: list, left: list) -> Judgement:
    text = consoles[0]
    verdict = Judgement()
    _, found, root = text.partition(ROOT)
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
