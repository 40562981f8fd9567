"""Command lines as scripts, schedulers and operators have them: odd ones that torchrun runs."""

import shlex
import socket

from cases import Case, free_port, of_every_rank, same_values, silent_console, two_sums

HOST = socket.gethostname()
# As a shell would split it; {port} is a free one. What a launcher above has left is overwritten.
OUTER = {"MASTER_ADDR": "job-master-0", "MASTER_PORT": "23456", "WORLD_SIZE": "16", "RANK": "3",
         "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "9", "GROUP_RANK": "5", "NODE_RANK": "1",
         "ROLE_NAME": "q", "TORCHELASTIC_RUN_ID": "outer", "TORCHELASTIC_RESTART_COUNT": "8"}
STATIC = "--nproc_per_node 2 --nnodes 1 --node_rank 0"
AT_ANY_PORT = "--rdzv_backend=c10d --rdzv_endpoint=localhost:0"
LINES = [
    ("Megatron", f"{STATIC} --master_addr localhost --master_port {{port}} {{probe}} --tp 2", {}),
    ("SageMaker", f"{STATIC} --master_addr {HOST} --master_port {{port}} {{probe}} --lr 0.1",
     {"SM_HOSTS": '["algo-1"]'}),
    ("a batch script of Slurm's",
     f"--nnodes=1 --nproc_per_node=2 --rdzv_id=$RANDOM --rdzv_backend=c10d "
     f"--rdzv_endpoint={HOST}:0 {{probe}}", {}),
    ("TorchTitan",
     f"--nproc_per_node=2 {AT_ANY_PORT} --local-ranks-filter 0 --role rank --tee 3 "
     "--log_dir {logs} -m pkg.mod --job.config_file f.toml",
     {"PYTORCH_ALLOC_CONF": "expandable_segments:True"}),
    ("a PyTorchJob", "{probe}",
     {**OUTER, "PET_NNODES": "1", "PET_NPROC_PER_NODE": "2", "PET_NODE_RANK": "0",
      "PET_MASTER_ADDR": "127.0.0.1", "PET_MASTER_PORT": "{port}", "PYTHONUNBUFFERED": "1"}),
    ("an elastic PyTorchJob", "{probe}",
     {"PET_NNODES": "1:1", "PET_NPROC_PER_NODE": "2", "PET_RDZV_BACKEND": "c10d",
      "PET_RDZV_ENDPOINT": "localhost:{port}", "PET_RDZV_ID": "job-1", "PET_MAX_RESTARTS": "10"}),
    ("IPv6 for c10d", "--rdzv_backend=c10d --rdzv-endpoint=[::1]:{port} {probe}", {}),
    ("IPv6 for static", "--master_addr=[::1] --master_port={port} {probe}", {}),
    ("keys of both backends", f"{AT_ANY_PORT} --rdzv_conf timeout=900,join_timeout=60 {{probe}}",
     {}),
    ("abbreviations", "--nproc-per 2 --rdzv_b c10d --rdzv_e localhost:0 --max-r 1 {probe}", {}),
    ("Python as the program", "--standalone --no_python python -u {probe} a", {}),
    ("a separator on both sides", "--standalone -- {probe} -- a", {}),
    ("a flag and a value in one word", "--standalone -mr3 --log-dir {logs} pkg.mod a", {}),
    ("odd arguments", "--standalone {probe} '' 'a\nb' '\"q\"' a=b 'x\udcff' --standalone -h", {}),
    ("a flag above 1", "pkg.mod", {"PET_STANDALONE": "2", "PET_MODULE": "1"}),
    ("blanks in numbers and names", "--standalone --nproc-per-node ' 2' --signals-to-handle "
     "'SIGTERM, SIGINT, SIGHUP,SIGQUIT' {probe}", {}),
    ("empty variables", "--standalone {probe}",
     {"PET_LOG_DIR": "", "PET_ROLE": "", "PET_LOCAL_RANKS_FILTER": "", "PET_RDZV_CONF": "",
      "PET_DUPLICATE_STDOUT_FILTERS": "", "OMP_NUM_THREADS": ""}),
    ("variables that were unset in the shell", "--rdzv_backend=c10d --rdzv_id= "
     "--rdzv_endpoint=localhost:{port} --log_dir {logs} -r 3 {probe}", {}),
    ("blanks around an endpoint", "--rdzv-endpoint ' localhost:{port} ' {probe}", {}),
    ("a script on stdin", "--standalone - a", {}),
    ("an option of Python's in the script's place", "--standalone -- -m pkg.mod a", {}),
    ("--standalone replaces a backend", "--standalone --rdzv_backend=etcd --rdzv_endpoint=x:1 "
     "{probe}", {}),
    ("filters of no stream", "--standalone --log-dir {logs} -r3 --duplicate-stdout-filters=a "
     "{probe}", {}),
    ("a filter of no rank", "--standalone --local-ranks-filter=-1 {probe}", {}),
    ("a local address", "--standalone --local-addr=127.0.0.1 {probe}", {}),
    ("torch's own variables", "--standalone --nproc-per-node=2 {here}/gloo.py",
     {"USE_LIBUV": "0", "TORCH_MP_PARALLEL_START": "1"}),
    ("a rank of c10d", f"{AT_ANY_PORT} --node_rank=1 {{probe}}", {}),
]
SILENT = ("a filter of no rank", "filters of no stream")


def new_ids(theirs, ours):
    for outcome in (theirs, ours):
        if set(of_every_rank(outcome, "TORCHELASTIC_RUN_ID")) & {"", "none"}:
            yield "the run has no id of its own"
    yield from silent_console(theirs, ours)


CHECKS = {"torch's own variables": two_sums,
          "a local address": same_values("MASTER_ADDR"),
          "variables that were unset in the shell": new_ids}


def found_cases():
    cases = []
    for name, line, variables in LINES:
        port = str(free_port())
        words = [word.replace("{port}", port) for word in shlex.split(line)]
        variables = {key: value.replace("{port}", port) for key, value in variables.items()}
        check = silent_console if name in SILENT else CHECKS.get(name)
        cases.append(Case("found: " + name, words, variables, check=check))
    return cases
