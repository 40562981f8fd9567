"""Real torchrun and ddprun side by side: parity_test.py DDPRUN [word of a case's name]."""

import concurrent.futures
import os
import sys

import torch

from both import run_both
from cases import all_cases
from compare import differences
from found_cases import found_cases


def judge(case, may_lose_lines):
    theirs, ours = run_both(case.words, case.environment, case.program)
    wrong = list(differences(case, theirs, ours, may_lose_lines))
    if case.check and not wrong:
        wrong += case.check(theirs, ours)
    return wrong, ours


def main():
    release = tuple(int(part) for part in torch.__version__.split("+")[0].split(".")[:2])
    wanted = sys.argv[2] if len(sys.argv) > 2 else ""
    cases = [
        case
        for case in [*all_cases(), *found_cases()]
        if wanted in case.name and (release >= (2, 15) or not case.since_2_15)
    ]
    # 2.11 can lose a stream's last lines at exit.
    may_lose_lines = release < (2, 15)
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(max_workers=os.cpu_count() or 2) as pool:
        results = pool.map(lambda case: judge(case, may_lose_lines), cases)
        for case, (wrong, ours) in zip(cases, results):
            print("ok  " if not wrong else "FAIL", case.name, flush=True)
            for difference in wrong:
                print("      ", difference)
            if wrong and not ours.probes:
                print("       ddprun said:", ours.err[-2000:])
            failed += bool(wrong)
    print(f"torch {torch.__version__}: {len(cases)} cases, {failed} failed")
    return 1 if failed or not cases else 0


if __name__ == "__main__":  # the copies of torchrun import this file
    sys.exit(main())
