"""The command lines, by the numbers of the acceptance list that they show, and what is looked
at beyond the comparison that every case gets (compare.py)."""

import json
import pathlib
import re
import sys
from dataclasses import dataclass, field
from typing import Callable, Optional

from compare import is_uuid

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "support"))
from ports import free_port  # noqa: E402

TWO = ["--nproc-per-node=2"]
ALONE = ["--standalone", *TWO]


@dataclass
class Case:
    name: str
    words: list
    environment: dict = field(default_factory=dict)
    code: int = 0  # ddprun's; torchrun knows 0, 1 and 2 only
    check: Optional[Callable] = None
    since_2_15: bool = False
    differs: tuple = ()  # facts of a worker that are meant to differ
    program: str = "torchrun"  # or "launch": torch.distributed.launch, which ddprun-launch is


def of_every_rank(outcome, variable):
    return [facts["environment"].get(variable) for _, facts in sorted(outcome.probes.items())]


def same_values(*variables):
    def check(theirs, ours):
        for name in variables:
            left, right = of_every_rank(theirs, name), of_every_rank(ours, name)
            if left != right or not right:
                yield f"{name}: torchrun {left}, ddprun {right}"

    return check


def fresh_run_id(theirs, ours):
    for name, outcome in (("torchrun", theirs), ("ddprun", ours)):
        ids = set(of_every_rank(outcome, "TORCHELASTIC_RUN_ID"))
        if len(ids) != 1 or not is_uuid(ids.pop()):
            yield f"{name}: the run id is no UUID"
        if int(of_every_rank(outcome, "MASTER_PORT")[0]) < 1024:
            yield f"{name}: not an ephemeral port"


def loopback(_, ours):
    if set(of_every_rank(ours, "MASTER_ADDR")) != {"127.0.0.1"}:
        yield "MASTER_ADDR is not the loopback address"


def threads(expected):
    def check(_, ours):
        values = of_every_rank(ours, "OMP_NUM_THREADS")
        if any(not expected(value) for value in values):
            yield f"OMP_NUM_THREADS {values}"
        if "OMP_NUM_THREADS" in ours.err or "****" in ours.err:
            yield "a banner about threads"

    return check


def named_run_directory(theirs, ours):
    for name, outcome in (("torchrun", theirs), ("ddprun", ours)):
        if len(outcome.run_directories) != 1 or not re.fullmatch(
            r"foo_[a-z0-9_]{8}", outcome.run_directories[0]
        ):
            yield f"{name}: run directories {outcome.run_directories}"


def silent_console(theirs, ours):
    for name, outcome in (("torchrun", theirs), ("ddprun", ours)):
        if outcome.lines("out", "probe-") or outcome.lines("err", "probe-"):
            yield f"{name}: redirected output on the console"


def filtered_lines(theirs, ours):
    for name, outcome in (("torchrun", theirs), ("ddprun", ours)):
        lines = sorted(outcome.logs["attempt_0/filtered_stdout.log"].decode().splitlines())
        wanted = [f"[default{rank}]:probe-out {rank} {n} a,b" for rank in "01" for n in range(3)]
        if lines != wanted:
            yield f"{name}: filtered lines {lines}"


def report_names(*texts):
    def check(_, ours):
        for text in texts:
            if text not in ours.err:
                yield f"the report does not say {text!r}: {ours.err}"

    return check


def counts(*expected):
    def check(theirs, ours):
        for name, outcome in (("torchrun", theirs), ("ddprun", ours)):
            seen = sorted({restart for _, restart in outcome.probes})
            if seen != list(expected):
                yield f"{name}: restart counts {seen}"
            if len(set(of_every_rank(outcome, "TORCHELASTIC_RUN_ID"))) != 1:
                yield f"{name}: the run id changed"

    return check


def both_attempts(_, ours):
    for attempt in (0, 1):
        if f"attempt_{attempt}/0/stdout.log" not in ours.logs:
            yield f"attempt_{attempt} is gone"


def console_ranks(*ranks):
    def check(_, ours):
        shown = {line.split("probe-out ")[1][0] for line in ours.lines("out", "probe-out")}
        if shown != set(ranks):
            yield f"ranks on the console: {sorted(shown)}"

    return check


def refused(_, ours):
    if len(ours.err.splitlines()) != 1 or ours.probes:
        yield f"not refused in one sentence: {ours.err}"


def local_rank_first(_, ours):
    for (rank, _), facts in sorted(ours.probes.items()):
        if facts["argv"][1:] != [f"--local-rank={rank}", "a"]:
            yield f"arguments {facts['argv']}"


def same_record(theirs, ours):
    """The file that the launcher leaves for the one above it."""
    for name, outcome in (("torchrun", theirs), ("ddprun", ours)):
        message = json.loads(outcome.reply)["message"]
        if message["message"] != "ValueError: needle in a haystack" or message["errorCode"] != 1:
            yield f"{name}: {message}"
        if "needle" not in message["extraInfo"]["py_callstack"]:
            yield f"{name}: no call stack in {message}"


def two_sums(theirs, ours):
    for name, outcome in (("torchrun", theirs), ("ddprun", ours)):
        if outcome.lines("out", "sum") != ["sum 3.0", "sum 3.0"]:
            yield f"{name}: {outcome.out}"


def port_case():
    port = free_port()
    return Case(
        "27: --master-port fixes address and port and keeps the run id",
        [*TWO, f"--master-port={port}", "--rdzv-id=foo", "{probe}"],
        check=same_values("MASTER_PORT", "MASTER_ADDR", "TORCHELASTIC_RUN_ID"),
    )


# Under torchrun a function in a process that multiprocessing has made.
OF_A_FUNCTION = (
    "interpreter's options",
    "leads its session and group",
    "descriptors",
    "stdin",
    "ignored signals",
)


def health_case():
    port = free_port()
    return Case(
        "62: a port for the health check changes nothing for workers",
        [*ALONE, "{probe}"],
        {"TORCHELASTIC_HEALTH_CHECK_PORT": str(port)},
        check=report_names(f":{port}/metrics"),
    )


def rendezvous_cases():
    return [
        Case(
            "24, 25, 30, 32, 55: what two workers are given",
            [*ALONE, "--max-restarts=3", "{probe}"],
            {"PET_ROLE": "r", "MY_OWN": "1"},
            check=loopback,
        ),
        Case(
            "26: --standalone has a run id of its own",
            [*ALONE, "--rdzv-id=foo", "{probe}"],
            check=fresh_run_id,
        ),
        Case(
            "27: a plain run is standalone",
            [*TWO, "{probe}"],
            check=fresh_run_id,
            since_2_15=True,
        ),
        port_case(),
        Case(
            "63: nodes declared alike",
            [*ALONE, "{probe}"],
            {"TORCH_ELASTIC_WORKER_IDENTICAL": "1"},
            check=same_values("RANK", "ROLE_RANK", "WORLD_SIZE", "ROLE_WORLD_SIZE"),
        ),
        Case(
            "27: a static endpoint",
            [*TWO, f"--rdzv-endpoint=localhost:{free_port()}", "{probe}"],
            check=same_values("MASTER_PORT", "MASTER_ADDR", "TORCHELASTIC_RUN_ID"),
        ),
    ]


def environment_cases():
    return [
        health_case(),
        Case(
            "28: a preset NCCL variable is kept",
            [*ALONE, "{probe}"],
            {"TORCH_NCCL_ASYNC_ERROR_HANDLING": "0"},
        ),
        Case(
            "29: threads of two workers",
            [*ALONE, "{probe}"],
            check=threads(lambda value: int(value) >= 1),
        ),
        Case("29: torchrun's threads", [*ALONE, "{probe}"], {"DDPRUN_COMPAT": "1"},
             check=same_values("OMP_NUM_THREADS")),
        Case(
            "29: threads of one worker",
            ["--standalone", "{probe}"],
            check=threads(lambda value: value is None),
        ),
        Case(
            "29: preset threads",
            [*ALONE, "{probe}"],
            {"OMP_NUM_THREADS": "4"},
            check=threads(lambda value: value == "4"),
        ),
        Case(
            "31: virtual local ranks",
            [*ALONE, "--virtual-local-rank", "{probe}"],
            {"CUDA_VISIBLE_DEVICES": "5,7"},
            check=same_values("LOCAL_RANK", "CUDA_VISIBLE_DEVICES"),
        ),
        Case(
            "31: virtual local ranks on ROCm",
            [*ALONE, "--virtual-local-rank", "{probe}"],
            {"HIP_VISIBLE_DEVICES": "2,3", "CUDA_VISIBLE_DEVICES": "5,7"},
            check=same_values("LOCAL_RANK", "CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES"),
            since_2_15=True,
        ),
        Case(
            "33: no shared store",
            [*ALONE, "{probe}"],
            {"TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"},
            check=same_values("TORCHELASTIC_USE_AGENT_STORE"),
        ),
        Case(
            "TorchX: c10d on one node, underscores, an empty role",
            [
                *"--rdzv_backend c10d --rdzv_endpoint localhost:0 --rdzv_id foo".split(),
                *"--nnodes 1 --nproc_per_node 2 --tee 3".split(),
                "--role",
                "",
                "--log_dir",
                "{logs}",
                "{probe}",
            ],
            check=lambda theirs, ours: [
                *same_values("TORCHELASTIC_RUN_ID", "ROLE_NAME")(theirs, ours),
                *named_run_directory(theirs, ours),
            ],
        ),
    ]


def command_cases():
    return [
        Case(
            "6: what follows the script is the script's",
            [*ALONE, "{probe}", "--nnodes", "3", "-m"],
        ),
        Case("7: a module", [*ALONE, "-m", "pkg.mod", "-m", "a"]),
        Case(
            "14: options in the environment",
            ["{probe}"],
            {
                "PET_STANDALONE": "1",
                "PET_NPROC_PER_NODE": "2",
                "PET_REDIRECTS": "3",
                "PET_LOG_DIR": "{logs}",
                "PET_ROLE": "r",
            },
            check=silent_console,
        ),
        Case(
            "19: macros",
            [
                "--standalone",
                "{probe}",
                "${local_rank}",
                "$local_rank",
                "${x}",
                "a$$b",
                "$local_rank_x",
                "$",
            ],
        ),
    ]


def form_cases():
    return [
        Case(
            "23: torch.distributed.launch passes the local rank first",
            [*ALONE, "{probe}", "a"],
            check=local_rank_first,
            program="launch",
        ),
        Case(
            "23: to a module, too",
            [*ALONE, "-m", "pkg.mod", "a"],
            check=local_rank_first,
            program="launch",
        ),
        Case(
            "23: not with --use-env",
            [*ALONE, "--use-env", "{probe}", "a"],
            program="launch",
        ),
        Case(
            "23: without Python it needs --use-env",
            [*ALONE, "--no-python", "/bin/true"],
            code=2,
            check=refused,
            program="launch",
        ),
        Case(
            "a script by its path, with arguments and redirects",
            [*ALONE, "--run-path", "--log-dir", "{logs}", "-r3", "{probe}", "-m", "a$$b"],
            differs=OF_A_FUNCTION,
        ),
        Case(
            "a script by its path that raises is recorded without a recorder of its own",
            [*ALONE, "--run-path", "{here}/raising.py"],
            {"TORCHELASTIC_ERROR_FILE": "{dir}/reply.json"},
            code=1,
            check=lambda theirs, ours: [
                *same_record(theirs, ours),
                *report_names("rank 1", "ValueError: needle in a haystack")(theirs, ours),
            ],
        ),
        Case(
            "the default layout of log files, by its name",
            [*ALONE, "--log-dir", "{logs}", "--logs-specs=default", "-r3", "{probe}"],
            check=silent_console,
        ),
    ]


def log_cases():
    logs = ["--log-dir", "{logs}"]
    template = "TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE"
    return [
        Case(
            "35: -r 3 leaves the console silent",
            [*ALONE, *logs, "-r3", "{probe}"],
            check=silent_console,
        ),
        Case("36: redirects per rank", [*ALONE, *logs, "-r", "0:1,1:2", "{probe}"]),
        Case("37: -t 3", [*ALONE, *logs, "-t", "3", "{probe}"]),
        Case(
            "38: a role and both masks",
            [*ALONE, *logs, "--role=trainer", "-t1", "-r2", "{probe}"],
        ),
        Case(
            "39: a prefix from the variable",
            [*ALONE, *logs, "-t3", "{probe}"],
            {template: "${role_name}-${rank} ${what}> "},
        ),
        Case(
            "39: a prefix from the option",
            [
                *ALONE,
                *logs,
                "-t3",
                "--log-line-prefix-template",
                "${hostname}/${local_rank}: ",
                "{probe}",
            ],
            {template: "not this"},
            since_2_15=True,
        ),
        Case(
            "40: a tee'd rank that is filtered out",
            [*ALONE, *logs, "-t3", "--local-ranks-filter=0", "{probe}"],
            check=console_ranks("0"),
        ),
        Case(
            "40: an inherited stream that is filtered out",
            [*ALONE, "--local-ranks-filter=1", "{probe}"],
            check=console_ranks("1"),
        ),
        Case(
            "41: duplicate filters",
            [*ALONE, *logs, "-t3", "--duplicate-stdout-filters=a,,b,c", "{probe}"],
            check=filtered_lines,
        ),
        Case(
            "42: no files at all",
            [*ALONE, "--log-dir=/dev/null", "-r3", "{probe}"],
            check=same_values("TORCHELASTIC_ERROR_FILE"),
        ),
        Case(
            "43: a log directory that is a file",
            [*ALONE, "--log-dir=/bin/true", "{probe}"],
            code=2,
            check=refused,
        ),
        Case(
            "44: the logs of both attempts stay",
            ["--standalone", *logs, "--max-restarts=1", "-r3", "{probe}"],
            {"PROBE_FAIL": "0:5"},
            code=5,
            check=both_attempts,
        ),
    ]


def ending_cases():
    return [
        Case(
            "22: no device whose CPUs workers could be bound to",
            [*ALONE, "--numa-binding=node", "{probe}"],
            {"CUDA_VISIBLE_DEVICES": ""},
            code=2,
            check=refused,
        ),
        Case("45: all workers end well", [*ALONE, "{probe}"]),
        Case(
            "46: a worker fails",
            [*ALONE, "{probe}"],
            {"PROBE_FAIL": "1:3"},
            code=3,
            check=report_names("rank 1", "exit code 3", "probe-err 1 2 needle"),
        ),
        Case(
            "48: a worker is killed",
            [*ALONE, "{probe}"],
            {"PROBE_KILL": "1"},
            code=137,
            check=report_names("rank 1", "SIGKILL"),
        ),
        Case("34: all_reduce with gloo", [*ALONE, "{here}/gloo.py"], check=two_sums),
        Case(
            "49, 50: a recorded error is reported, and passed to the launcher above",
            [*ALONE, "{here}/failing.py"],
            {"TORCHELASTIC_ERROR_FILE": "{dir}/reply.json"},
            code=1,
            check=lambda theirs, ours: [
                *same_record(theirs, ours),
                *report_names("rank 1", "ValueError: needle in a haystack")(theirs, ours),
            ],
        ),
        Case(
            "51: the third try succeeds",
            [*ALONE, "--max-restarts=2", "{probe}"],
            {"PROBE_FAIL": "1:3", "PROBE_UNTIL": "2"},
            check=counts(0, 1, 2),
        ),
        Case(
            "52: three rounds that fail",
            [*ALONE, "--max-restarts=2", "{probe}"],
            {"PROBE_FAIL": "0:4"},
            code=4,
            check=counts(0, 1, 2),
        ),
    ]


def all_cases():
    return [
        *rendezvous_cases(),
        *environment_cases(),
        *command_cases(),
        *form_cases(),
        *log_cases(),
        *ending_cases(),
    ]
