"""ddprun's scanner against the real thing: the same command lines through torchrun's own parser.

Fixed lines for every rule, and random ones from words that are known to be awkward. The
differences that are meant are listed in `meant_difference`; anything else fails, with the line that
shows it.
"""

import contextlib
import io
import json
import random
import subprocess
import sys

from torch.distributed.run import get_args_parser

FIXED = [
    [],
    ["W"],
    ["--nproc_per_node=2", "W"],
    ["--nproc-per-node", "2", "W"],
    ["--bogus", "W"],
    ["--nproc", "2", "W"],
    ["--nproc-per", "2", "W"],
    ["--stand", "W"],
    ["--master", "x", "W"],
    ["W", "--nnodes", "3", "-m", "x"],
    ["-m", "--", "pkg.mod", "-m", "a"],
    ["-mr3", "W"],
    ["-r3", "W"],
    ["-r=3", "W"],
    ["-mr", "3", "W"],
    ["-rm", "W"],
    ["--", "W"],
    ["--", "--strange"],
    ["--nnodes=1", "--nnodes=1:1", "W"],
    ["--standalone=1", "W"],
    ["--standalone=", "W"],
    ["--max-restarts=x", "W"],
    ["--max-restarts", "-1", "W"],
    ["--max-restarts= 1_0 ", "W"],
    ["--monitor-interval=.5", "W"],
    ["--monitor-interval=1e-3", "W"],
    ["--monitor-interval", "-.5", "W"],
    ["--role", "", "W"],
    ["--role=", "W"],
    ["--role", "-a b", "W"],
    ["--role", "-a", "W"],
    ["--role", "--standalone", "W"],
    ["--role"],
    ["-", "x"],
    ["-1", "x"],
    ["-1.5", "x"],
    ["-x", "W"],
    ["-mx", "W"],
    ["-m=1", "W"],
    ["--start-method=zzz", "W"],
    ["--numa-binding=foo", "W"],
    ["--rdzv_conf", "a=b=c", "W"],
    ["--rdzv_conf=a=b=c", "W"],
    ["-h"],
    ["--help", "W"],
    ["--h", "W"],
    ["--he"],
    ["--bogus", "--help"],
    ["W", "-h"],
    ["--standalone"],
    ["-t", "0:1,1:2", "W"],
    ["", "x"],
    ["--log", "x", "W"],
    ["--log-d", "x", "W"],
    ["--dup", "x", "W"],
    ["--node-rank", "+1", "W"],
]

WORDS = [
    "W",
    "-",
    "--",
    "-m",
    "-r",
    "-t",
    "-r3",
    "-mr",
    "-mt2",
    "-rm",
    "-x",
    "-1",
    "-0.5",
    "-5x",
    "- x",
    "3",
    "0:1",
    "",
    "a b",
    "x=y",
    "-r=1",
    "-m=",
    "--standalone",
    "--stand",
    "--standalone=1",
    "--nnodes",
    "--nnodes=1",
    "--nno",
    "--nproc",
    "--nproc-per",
    "--nproc_per_node",
    "--nproc-per=2",
    "--role",
    "--role=",
    "--role=x",
    "--max-restarts",
    "--max_restarts=2",
    "--max-restarts=x",
    "--monitor",
    "--tee",
    "--tee=3",
    "--red",
    "--master",
    "--master-p",
    "--module",
    "--mod",
    "--no-python",
    "--no_p",
    "--bogus",
    "--bogus=1",
    "--help",
    "--hel",
    "--shutdown-timeout=2",
    "--start-method=fork",
    "--start-method=zzz",
    "--virtual-local",
    "--signals",
    "--local-a",
]


def theirs(parser, words):
    silent = io.StringIO()
    try:
        with contextlib.redirect_stderr(silent), contextlib.redirect_stdout(silent):
            known = vars(parser.parse_args(words))
    except SystemExit as stop:
        last_line = silent.getvalue().splitlines()[-1:]
        return {"action": "help"} if stop.code == 0 else {"error": last_line[0]}
    program = [known.pop("training_script"), *known.pop("training_script_args")]
    return {"options": known, "program": program}


def same_value(ours, value):
    if isinstance(value, bool):
        return value == (ours == "")
    if isinstance(value, int):
        return int(ours) == value
    if isinstance(value, float):
        return float(ours) == value
    if isinstance(value, list):
        return True  # filters: logs_test.cpp has their rule
    return ours == value


def same(ours, parsed, defaults):
    if "error" in parsed or "action" in parsed:
        same_action = parsed.get("action") == ours.get("action")
        return ("error" in parsed) == ("error" in ours) and same_action
    if "options" not in ours or ours["program"] != parsed["program"]:
        return False
    given = {name.replace("-", "_"): value for name, value in ours["options"].items()}
    for name, value in parsed["options"].items():
        if name in given and not same_value(given[name], value):
            return False
        if name not in given and value != defaults[name]:
            return False
    return set(given) <= set(parsed["options"])


def meant_difference(words, ours, parsed):
    """What ddprun does differently on purpose (docs/TORCHRUN.md); the reason, or None."""
    text = parsed.get("error", "")
    # Look-ups beyond the script: argparse judges words that belong to the script.
    if "program" in ours and "ambiguous option" in text:
        return "an ambiguous word after the script is the script's business"
    if ours.get("action") == "help" and text:
        return "help is answered whatever else is wrong before the script"
    # A double dash right after the script, and one in the place of a value, depend on the version
    # of Python.
    if "--" in words:
        return "a double dash other than the first word"
    return None


def random_lines(seed, count):
    dice = random.Random(seed)
    return [dice.choices(WORDS, k=dice.randint(1, 6)) for _ in range(count)]


def main():
    parser = get_args_parser()
    defaults = vars(parser.parse_args(["W"]))
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else random.randrange(2**32)
    print("seed", seed)
    lines = FIXED + random_lines(seed, 3000)
    told = "".join(json.dumps(words) + "\n" for words in lines)
    probe = subprocess.run(
        [sys.argv[1]], input=told, capture_output=True, text=True, timeout=100, check=True
    )
    answers = [json.loads(line) for line in probe.stdout.splitlines()]
    assert len(answers) == len(lines)
    compared, meant, wrong = 0, 0, []
    for words, ours in zip(lines, answers):
        options = parser._option_string_actions  # 2.11 lacks some options of 2.15
        if any(
            name.replace("_", "-") in ("shutdown-timeout", "log-line-prefix-template")
            and "--" + name not in options
            for name in ours.get("options", {})
        ):
            continue
        parsed = theirs(parser, words)
        if same(ours, parsed, defaults):
            compared += 1
        elif meant_difference(words, ours, parsed):
            meant += 1
        else:
            wrong.append((words, ours, parsed))
    for words, ours, parsed in wrong[:10]:
        print("command line", words, "\n  ddprun  ", ours, "\n  torchrun", parsed)
    print(compared, "alike,", meant, "meant to differ,", len(wrong), "wrong")
    assert not wrong
    assert compared > 2000, "the comparison must not be emptied by its exceptions"


main()
