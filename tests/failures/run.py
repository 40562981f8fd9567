#!/usr/bin/env python3
"""The failure catalogue: injects each fault, and compares what ddprun says about it with the truth.

    python3 tests/failures/run.py --ddprun build/dev/bin/ddprun --inject build/dev/bin/inject
    python3 tests/failures/run.py ... 'exit code'       # the cases with this text in their name
    python3 tests/failures/run.py ... --show 'SIGSEGV'  # with what was printed
    python3 tests/failures/run.py ... --peer .venv/bin/torchrun   # one node, also under torchrun

The last line is a summary; of a comparison, a table. A case with a known shortfall is counted as
wrong, and does not fail the run; one that passes although it has one does.
"""

import argparse
import concurrent.futures
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import uuid

HERE = pathlib.Path(__file__).resolve().parent
sys.path += [str(HERE.parent / "chaos"), str(HERE.parent / "support")]
sys.dont_write_bytecode = True
import catalogue  # noqa: E402
import judge  # noqa: E402
import needs  # noqa: E402
import outside  # noqa: E402
import peer  # noqa: E402
import processes  # noqa: E402
from shortfalls import SHORTFALLS, SOMETIMES  # noqa: E402
from ports import free_port  # noqa: E402

CASE_SECONDS = 40  # after which a case counts as hung
SCRIPT = """#!/bin/sh
PATH=/usr/local/bin:/usr/bin:/bin
: ${{DDPRUN_ROUND:=$((TORCHELASTIC_RESTART_COUNT + 1))}}; export DDPRUN_ROUND  # torchrun has none
"$I" meet || exit 99
case $RANK in
{culprit}) {worker} ;;
*) {peers} ;;
esac
"""
# Variables of an outer launcher or scheduler would change what the cases do.
FOREIGN = ("PET_", "TORCHELASTIC_", "DDPRUN_", "SLURM_", "OMPI_", "PMI_", "RANK", "LOCAL_RANK",
           "WORLD_SIZE", "MASTER_", "OMP_NUM_THREADS")


class Running:
    """A case that runs: its folder, its launchers, its mark."""

    def __init__(self, case, tools):
        self.case = case
        self.tools = tools
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="ddprun_failure_"))
        self.mark = "FAILURE_CASE=" + uuid.uuid4().hex
        self.nodes = []
        self.cgroup = ""

    def environment(self) -> dict:
        kept = {key: value for key, value in os.environ.items() if not key.startswith(FOREIGN)}
        name, _, value = self.mark.partition("=")
        return kept | {
            name: value, "CASE_DIR": str(self.folder), "I": self.tools.inject,
            "P": f"{sys.executable} -S", "FAULTS": str(HERE / "faults.py"),
            "CASE_CGROUP": self.cgroup, "TMPDIR": str(self.folder), "DDPRUN": self.tools.ddprun,
            "PYTHONDONTWRITEBYTECODE": "1"} | self.case.environment

    def program(self) -> list:
        if self.case.program:
            return [word.replace("$CASE_DIR", str(self.folder)) for word in self.case.program]
        script = self.folder / "worker.sh"
        culprit = self.case.culprit if isinstance(self.case.culprit, int) else 1
        script.write_text(SCRIPT.format(culprit=culprit, worker=self.case.worker,
                                        peers=self.case.peers))
        return ["--no-python", "/bin/sh", str(script)]

    def command(self, port: int, index: int) -> list:
        if self.tools.peer:
            return peer.command(self.tools.peer, self.case, self.program())
        place = ["--standalone"] if self.case.nodes == 1 else [
            f"--nnodes={self.case.nodes}", f"--rdzv-endpoint=127.0.0.1:{port}",
            "--rdzv-backend=c10d", f"--rdzv-id={self.folder.name}", f"--node-rank={index}"]
        return [*self.case.prefix, self.tools.ddprun, *place, f"--nproc-per-node={self.case.ranks}",
                "--shutdown-timeout=5", *self.case.options, *self.program()]

    def start(self) -> None:
        port = free_port() if self.case.nodes > 1 else 0
        for index in range(self.case.nodes - self.case.absent):
            with open(self.folder / f"console.{index}", "wb") as console:
                self.nodes.append(subprocess.Popen(
                    self.command(port, index), env=self.environment(), cwd=self.folder,
                    stdin=subprocess.DEVNULL, stdout=console, stderr=console,
                    start_new_session=True))
            if index == 0 and self.case.nodes > 1:
                outside.until(lambda: processes.listens(self.nodes[0].pid, port))

    def end(self) -> tuple:
        deadline = time.monotonic() + CASE_SECONDS
        codes = []
        for node in self.nodes:
            try:
                code = node.wait(max(0.1, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                code = "hung"
            codes.append(128 - code if isinstance(code, int) and code < 0 else code)
        if self.case.outside == "kill_front":  # the guard and the agent clean up, without a parent
            outside.until(lambda: not processes.with_mark(self.mark), seconds=5, required=False)
        if self.case.needs == "freezer":  # SIGKILL waits for it
            needs.thaw(pathlib.Path(self.cgroup))
        left = processes.with_mark(self.mark)
        described = [processes.describe(pid) for pid in left]
        for pid in left:
            processes.kill(pid, signal.SIGCONT)
            processes.kill(pid)
        consoles = [(self.folder / f"console.{index}").read_text(errors="replace")
                    for index in range(len(self.nodes))]
        return codes, consoles, described


def run_case(case, tools) -> tuple:
    """The judgement of one case, or the reason for which it is skipped, and the consoles."""
    missing = needs.missing(case.needs)
    if missing:
        return missing, []
    running = Running(case, tools)
    try:
        with needs.provided(case.needs) as running.cgroup:
            running.start()
            if case.outside:
                getattr(outside, case.outside)(running)
            codes, consoles, left = running.end()
        if tools.peer:
            return peer.judge(case, consoles, left), consoles
        return judge.judge(case, codes, consoles, left), consoles
    except outside.Failed as error:
        verdict = judge.Judgement(False, False, wrong=[str(error)])
        _, consoles, _ = running.end()
        return verdict, consoles
    finally:
        shutil.rmtree(running.folder, ignore_errors=True)


def tell(case, verdict, consoles, show: bool) -> bool:
    """Prints one line about a case; whether the whole run fails because of it."""
    if isinstance(verdict, str):
        print(f"skip  {case.name}: {verdict}")
        return False
    shortfall = SHORTFALLS.get(case.name, "")
    surprise = verdict.passed == bool(shortfall) and case.name not in SOMETIMES
    word = "ok   " if verdict.passed else "WRONG" if surprise else "short"
    text = "; ".join(verdict.wrong)
    if verdict.passed and shortfall:
        word, text = "WRONG", f"passes: remove it from shortfalls.py ({shortfall})"
    print(f"{word} {case.name}" + (f": {text}" if text else ""), flush=True)
    if show or surprise:
        for console in consoles:
            print("".join(f"      > {line[:200]}\n" for line in console.splitlines()[-40:]))
    return surprise


def summary(results) -> str:
    judged = [(case, verdict) for case, verdict in results if not isinstance(verdict, str)]
    faults = [verdict for case, verdict in judged if not case.healthy]
    controls = [verdict for case, verdict in judged if case.healthy]
    lengths = [verdict.lines for verdict in faults if verdict.lines]
    mean = sum(lengths) / len(lengths) if lengths else 0
    passed = sum(verdict.passed for _, verdict in judged)
    return (f"{sum(v.cause for v in faults)} of {len(faults)} causes right, "
            f"{sum(v.culprit for v in faults)} of {len(faults)} culprits, "
            f"{sum(not v.culprit for v in controls)} false alarms in {len(controls)} controls, "
            f"mean report length {mean:.1f} lines; {passed} of {len(judged)} cases pass in all "
            f"points, {len(results) - len(judged)} skipped")


def run_all(cases, tools) -> tuple:
    """The judgements, and whether one of them is a surprise."""
    failed = False
    results = []
    with concurrent.futures.ThreadPoolExecutor(tools.parallel) as pool:
        work = [(case, pool.submit(run_case, case, tools)) for case in cases]
        for case, future in work:
            verdict, consoles = future.result()
            results.append((case, verdict))
            if not tools.quiet:
                failed |= tell(case, verdict, consoles, tools.show)
    return results, failed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--ddprun", required=True, type=os.path.abspath)
    parser.add_argument("--inject", required=True, type=os.path.abspath)
    parser.add_argument("--peer", metavar="TORCHRUN", type=os.path.abspath,
                        help="runs the cases of one node under this torchrun, too, and compares")
    parser.add_argument("--parallel", type=int, default=4)
    parser.add_argument("--quiet", action="store_true", help="prints the last line or table only")
    parser.add_argument("--show", action="store_true")
    parser.add_argument("text", nargs="?", default="")
    tools = parser.parse_args()
    cases = [case for case in catalogue.CASES if tools.text in case.name]
    if tools.peer:
        return peer.compare(cases, tools, run_all)
    began = time.monotonic()
    results, failed = run_all(cases, tools)
    print(f"{time.monotonic() - began:.1f} s for {len(cases)} cases")
    print(summary(results))
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
