"""What torchrun refuses, ddprun refuses too: one sentence, exit code 2, before anything starts.

torchrun's side is its own parser and configuration, called in this process. A line that it takes
and ddprun refuses on purpose stands in ONLY_OURS with the reason.
"""

import contextlib
import io
import os
import subprocess
import sys

from torch.distributed.run import config_from_args, parse_args

BOTH = [
    [],
    ["--bogus", "W"],
    ["--nproc", "2", "W"],
    ["--nnodes=2:1", "W"],
    ["--nnodes=0", "W"],
    ["--nnodes=1:2:3", "W"],
    ["--nnodes=x", "W"],
    ["--nproc-per-node=foo", "W"],
    ["--nproc-per-node=gpu", "W"],
    ["--nproc-per-node=xpu", "W"],
    ["--max-restarts=-1", "W"],
    ["--max-restarts=x", "W"],
    ["--monitor-interval=x", "W"],
    ["--standalone=1", "W"],
    ["-m", "--no-python", "x"],
    ["--rdzv-conf", "a", "W"],
    ["--rdzv-conf", "=", "W"],
    ["--rdzv-conf", "a=", "W"],
    ["--rdzv-conf", "a=1,", "W"],
    ["-r", "4", "W"],
    ["-r", "0:4", "W"],
    ["-t", "0:1,", "W"],
    ["--tee=0:1, 1:2", "W"],
    ["--numa-binding=foo", "W"],
    ["--start-method=zzz", "W"],
    ["--local-ranks-filter=x", "W"],
    ["--local-ranks-filter=0,", "W"],
    ["--logs-specs=zeus", "W"],
    ["--nnodes=", "W"],
    ["--node-rank=", "W"],
    ["--master-port=", "W"],
    ["--rdzv-conf", "timeout=900, join_timeout=60,", "W"],
]
# What has no effect is no mistake.
NEITHER = [
    ["--nnodes=1:2", "--master-addr=127.0.0.1", "true"],
    ["--duplicate-stdout-filters=a", "true"],
    ["--local-ranks-filter=-1", "true"],
    ["--local-ranks-filter=7", "true"],
    ["--logs-specs=default", "true"],
    ["--event-log-handler=dynamic_rendezvous", "true"],
    ["--start-method=fork", "true"],
    ["--standalone", "--rdzv-backend=zeus", "--rdzv-endpoint=a b", "true"],
]
BOTH_VARIABLES = [
    {"PET_MAX_RESTARTS": "abc"},
    {"PET_MAX_RESTARTS": ""},
    {"PET_NNODES": ""},
    {"PET_STANDALONE": ""},
    {"PET_REDIRECTS": "4"},
    {"PET_MASTER_PORT": "x"},
]
ONLY_OURS = [
    (["--standalone", "--nnodes=2", "W"], "torchrun waits for a node that cannot come"),
    (["--nnodes=2", "--master-port=0", "W"], "torchrun's other nodes cannot know the port"),
    (["--nnodes=2", "--node-rank=2", "W"], "torchrun waits until its time is up"),
    (["--nnodes=2", "--rdzv-backend=c10d", "--rdzv-endpoint=localhost:0", "W"], "the same"),
    (["--nnodes=2", "--rdzv-conf=join_timeout=0", "W"], "torchrun notices later"),
    (["--hosts=198.51.100.7,198.51.100.8", "W"], "ddprun's own option"),
    (["--nproc-per-node=0", "W"], "torchrun notices later"),
    (["--monitor-interval=0", "W"], "torchrun notices later"),
    (["--rdzv-backend=zeus", "W"], "torchrun notices later"),
    (["--rdzv-backend=etcd-v2", "W"], "torchrun looks for etcd's client later"),
    (["--rdzv-backend=c10d", "--rdzv-endpoint=a b", "W"], "torchrun notices later"),
    (["--shutdown-timeout=-1", "W"], "torchrun notices later; 2.11 has no such option"),
    (["--signals-to-handle=SIGKILL", "W"], "torchrun fails after the rendezvous"),
    (["--event-log-handler=zeus", "W"], "torchrun fails at the first event"),
    (["--log-dir=/bin/true", "W"], "torchrun notices later"),
    (["--log-dir=/dev/null", "--duplicate-stdout-filters=a", "W"], "torchrun notices later"),
]


def theirs_refuses(words):
    silent = io.StringIO()
    try:
        with contextlib.redirect_stderr(silent), contextlib.redirect_stdout(silent):
            config_from_args(parse_args(words))
    except (SystemExit, Exception):
        return True
    return False


def complaint(words, variables):
    """What is wrong with ddprun's refusal; None when all is well."""
    environment = {**os.environ, **variables}
    run = subprocess.run(
        [sys.argv[1], *words], capture_output=True, text=True, timeout=60, env=environment
    )
    one_line = len(run.stderr.splitlines()) == 1 and run.stderr.startswith("ddprun: error [")
    if run.returncode == 2 and one_line and not run.stdout:
        return None
    return f"code {run.returncode}: {run.stderr}"


def main():
    os.environ.pop("PET_STANDALONE", None)
    os.environ["CUDA_VISIBLE_DEVICES"] = ""
    wrong = []
    lines = [(words, {}) for words in BOTH] + [(["W"], change) for change in BOTH_VARIABLES]
    for words, variables in lines:
        os.environ.update(variables)
        if not theirs_refuses(words):
            wrong.append((words, variables, "torchrun takes it"))
        for name in variables:
            del os.environ[name]
        problem = complaint(words, variables)
        if problem:
            wrong.append((words, variables, problem))
    for words, _ in ONLY_OURS:
        problem = complaint(words, {})
        if problem:
            wrong.append((words, {}, problem))
    for words in NEITHER:
        dry = subprocess.run([sys.argv[1], "--dry-run", *words], capture_output=True, text=True,
                             timeout=60, check=False)
        if theirs_refuses(words) or dry.returncode:
            wrong.append((words, {}, f"torchrun and ddprun take it; {dry.stderr}"))
    for line in wrong:
        print(*line)
    print(len(lines) + len(ONLY_OURS) + len(NEITHER), "command lines,", len(wrong), "wrong")
    return 1 if wrong else 0


sys.exit(main())
