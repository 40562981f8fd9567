"""Reads what ddprun printed and compares it with what a case expects."""

import dataclasses
import re

HEADLINE = re.compile(r"^ddprun: error \[([A-Z0-9-]+)\] (.*)$")
ALARM = re.compile(r"^ddprun: (?:warning|error) \[([A-Z0-9-]+)\]")
# Of ddprun's own lines after the report; a worker's output may not follow it.
AFTER = re.compile(r"^ddprun: (?:note \[|cleanup)|^cleanup: ")
REPORT_LINES_MAX = 30


@dataclasses.dataclass
class Report:
    cause: str
    headline: str
    lines: list  # the headline included
    last: bool  # nothing but ddprun's own lines follows it

    @property
    def ranks(self) -> set:
        """The ranks that the first line blames: those that it names in full (a witness has its
        host alone), else all. Of a nested launcher, its worker alone."""
        outer = self.headline.partition("; it runs ")[0]
        full = re.findall(r"\brank (\d+) \(local ", outer)
        return {int(rank) for rank in full or re.findall(r"(?<!node )\brank (\d+)\b", outer)}


def read_report(console: str):
    lines = console.splitlines()
    heads = [i for i, line in enumerate(lines) if HEADLINE.match(line)]
    if not heads:
        return None
    first = heads[-1]
    end = first + 1
    while end < len(lines) and lines[end].startswith("  "):
        end += 1
    cause, headline = HEADLINE.match(lines[first]).groups()
    rest = [line for line in lines[end:] if line and not AFTER.match(line)]
    return Report(cause, headline, lines[first:end], not rest)


def errors_of(console: str, allowed: tuple) -> list:
    found = [HEADLINE.match(line) for line in console.splitlines()]
    return [head.group(1) for head in found if head and head.group(1) not in allowed]


def blames(report: Report, culprit) -> bool:
    if culprit is None:
        return not report.ranks
    wanted = culprit if isinstance(culprit, tuple) else (culprit,)
    return len(report.ranks) == 1 and report.ranks <= set(wanted)


@dataclasses.dataclass
class Judgement:
    cause: bool = True
    culprit: bool = True
    lines: int = 0  # of the report
    left: int = 0  # processes that were left behind
    wrong: list = dataclasses.field(default_factory=list)

    @property
    def passed(self) -> bool:
        return not self.wrong


def judge_report(case, console: str, verdict: Judgement) -> None:
    report = read_report(console)
    if report is None:
        verdict.cause = verdict.culprit = False
        verdict.wrong.append("no report")
        return
    verdict.lines = len(report.lines)
    text = "\n".join(report.lines)
    causes = case.cause if isinstance(case.cause, tuple) else (case.cause,)
    if report.cause not in causes:
        verdict.cause = False
        verdict.wrong.append(f"cause {report.cause} instead of {case.cause}")
    if not blames(report, case.culprit):
        verdict.culprit = False
        verdict.wrong.append(f"blames {sorted(report.ranks)} instead of {case.culprit}")
    if case.says not in text:
        verdict.wrong.append(f"does not say '{case.says}'")
    if case.never and case.never in text:
        verdict.wrong.append(f"says '{case.never}'")
    if len(report.lines) > REPORT_LINES_MAX:
        verdict.wrong.append(f"{len(report.lines)} lines")
    if not report.last:
        verdict.wrong.append("the report is not the last thing printed")
    errors = errors_of(console, case.allowed)
    if len(errors) != 1:
        verdict.wrong.append(f"{len(errors)} errors instead of one report")


def judge_health(case, console: str, verdict: Judgement) -> None:
    printed = [line for line in console.splitlines() if ALARM.match(line)]
    right = (*case.allowed, "W-FAKE")  # a worker prints the second
    false = [line for line in printed if ALARM.match(line).group(1) not in right]
    if false:
        verdict.cause = verdict.culprit = False
        verdict.wrong.append(f"false alarm: {false[0]}")
    if case.says not in console:
        verdict.wrong.append(f"does not say '{case.says}'")


def judge(case, codes: list, consoles: list, left: list) -> Judgement:
    """`consoles`: of all nodes, that of the coordinator first."""
    verdict = Judgement()
    wanted = case.code if isinstance(case.code, tuple) else (case.code,) * len(codes)
    if case.code is None:
        wanted = codes[:1] * len(codes)  # of whichever rank was first, equal on all nodes
    if list(codes) != list(wanted):
        verdict.wrong.append(f"exit code {codes} instead of {list(wanted)}")
    (judge_health if case.healthy else judge_report)(case, consoles[case.console], verdict)
    others = [console for index, console in enumerate(consoles) if index != case.console]
    if any(len(errors_of(console, case.allowed)) > 1 for console in others):
        verdict.wrong.append("another node prints more than one error line")
    verdict.left = len(left)
    if left:
        verdict.wrong.append("left behind: " + "; ".join(left))
    return verdict
