#include "launcher/options/option_table.hpp"

#include <array>

#include "base/assert.hpp"

namespace ddprun {
namespace {

using Id = OptionId;
using Value = OptionValue;
using Variable = OptionVariable;
using Group = OptionGroup;

constexpr std::array<OptionSpec, kOptionCount> kOptions{{
    {.id = Id::kNnodes,
     .name = "nnodes",
     .variable = Variable::kPet,
     .group = Group::kRendezvous,
     .metavar = "N|MIN:MAX",
     .preset = "1:1",
     .help = "Number of nodes; with c10d it may be a range: the run starts with MIN, and nodes "
             "may come and go up to MAX."},
    {.id = Id::kNprocPerNode,
     .name = "nproc-per-node",
     .variable = Variable::kPet,
     .group = Group::kProgram,
     .metavar = "N|cpu|gpu|xpu|auto",
     .preset = "1",
     .help = "Workers on this node: a number, cpu, gpu or xpu (one per device; xpu: Intel's "
             "GPUs), or auto (one per GPU or XPU, or per CPU if there is neither)."},
    {.id = Id::kModule,
     .name = "module",
     .letter = 'm',
     .value = Value::kFlag,
     .variable = Variable::kPet,
     .group = Group::kProgram,
     .help = "Run the program as a Python module: python -u -m PROGRAM."},
    {.id = Id::kNoPython,
     .name = "no-python",
     .value = Value::kFlag,
     .variable = Variable::kPet,
     .group = Group::kProgram,
     .help = "Run the program directly, looked up in PATH. Not required for programs that are "
             "not Python."},
    {.id = Id::kRole,
     .name = "role",
     .variable = Variable::kPet,
     .group = Group::kProgram,
     .metavar = "NAME",
     .preset = "default",
     .help = "Role of the workers: ROLE_NAME in their environment, and the beginning of the "
             "prefix of tee'd lines. May be empty."},
    {.id = Id::kVirtualLocalRank,
     .name = "virtual-local-rank",
     .value = Value::kFlag,
     .variable = Variable::kPet,
     .group = Group::kProgram,
     .help = "Each worker sees LOCAL_RANK=0 and one device; DDPRUN_LOCAL_RANK is its real local "
             "rank."},
    {.id = Id::kGpus,
     .name = "gpus",
     .variable = Variable::kDdprun,
     .group = Group::kProgram,
     .metavar = "all|LIST",
     .help = "NVIDIA GPUs or MIG instances of this node for its workers, 2,4,7 or by UUID: their "
             "CUDA_VISIBLE_DEVICES. Indices count what is visible now. Without --nproc-per-node: "
             "one worker for each."},
    {.id = Id::kShareGpus,
     .name = "share-gpus",
     .value = Value::kFlag,
     .variable = Variable::kDdprun,
     .group = Group::kProgram,
     .help = "Allow more workers than --gpus has devices: each sees one of them, and "
             "LOCAL_RANK=0."},
    {.id = Id::kCompat,
     .name = "compat",
     .value = Value::kFlag,
     .variable = Variable::kDdprun,
     .group = Group::kProgram,
     .help = "Where ddprun has a default of its own, use torchrun's: OMP_NUM_THREADS=1 for "
             "several workers instead of a share of the CPUs."},
    {.id = Id::kUseEnv,
     .name = "use-env",
     .value = Value::kFlag,
     .group = Group::kProgram,
     .help = "For ddprun-launch, which is torch.distributed.launch: pass the local rank in the "
             "environment only, as ddprun always does, not as --local-rank as well."},
    {.id = Id::kStandalone,
     .name = "standalone",
     .value = Value::kFlag,
     .variable = Variable::kPet,
     .group = Group::kRendezvous,
     .help = "Single node, with a free port and a unique run id. The default for one node if "
             "neither --master-port nor a backend or endpoint is given."},
    {.id = Id::kRdzvBackend,
     .name = "rdzv-backend",
     .variable = Variable::kPet,
     .group = Group::kRendezvous,
     .metavar = "c10d|static|etcd-v3",
     .preset = "static",
     .help = "How nodes form a run: c10d (elastic), static (numbered nodes, a fixed address), or "
             "etcd-v3 (elastic; the coordinator is elected in etcd, and any node may be lost)."},
    {.id = Id::kRdzvEndpoint,
     .name = "rdzv-endpoint",
     .variable = Variable::kPet,
     .group = Group::kRendezvous,
     .metavar = "HOST[:PORT]",
     .help = "Address of the rendezvous: HOST, HOST:PORT, [V6]:PORT. With c10d the port is 29400 "
             "unless given, and the node whose address it is runs the coordinator. With static: "
             "MASTER_ADDR and MASTER_PORT of the workers. With etcd-v3: the servers of etcd, "
             "HOST:2379,HOST:2379."},
    {.id = Id::kRdzvId,
     .name = "rdzv-id",
     .variable = Variable::kPet,
     .group = Group::kRendezvous,
     .metavar = "ID",
     .preset = "none",
     .help = "Name of the run: TORCHELASTIC_RUN_ID and the first part of the log directory's "
             "name."},
    {.id = Id::kRdzvConf,
     .name = "rdzv-conf",
     .variable = Variable::kPet,
     .group = Group::kRendezvous,
     .metavar = "K=V,...",
     .help = "Limits of the rendezvous of several nodes, in seconds or with a unit (90s, 10m): "
             "join_timeout=600, last_call_timeout=30, keep_alive_interval=1, "
             "keep_alive_max_attempt=5, coordinator_timeout=60, timeout=900 (static), is_host; "
             "for etcd-v3 user, password_file, etcd_prefix=/ddprun."},
    {.id = Id::kRdzvSecretFile,
     .name = "rdzv-secret-file",
     .variable = Variable::kDdprun,
     .group = Group::kRendezvous,
     .metavar = "FILE",
     .help = "File with the secret of the run, the same on every node: without it no node joins, "
             "and links of nodes are encrypted (TLS 1.3). At least 32 characters, readable only "
             "for its owner. Without it: DDPRUN_SECRET, else links in clear text."},
    {.id = Id::kNodeRank,
     .name = "node-rank",
     .value = Value::kInteger,
     .variable = Variable::kPet,
     .group = Group::kRendezvous,
     .metavar = "N",
     .preset = "0",
     .help = "Rank of this node, from 0. With static each node needs a different one. With c10d "
             "it is optional and orders the nodes of the first round; with --hosts it selects "
             "this node's entry."},
    {.id = Id::kMasterAddr,
     .name = "master-addr",
     .variable = Variable::kPet,
     .group = Group::kRendezvous,
     .metavar = "HOST",
     .preset = "127.0.0.1",
     .help = "With static: MASTER_ADDR of the workers, an address of node 0."},
    {.id = Id::kMasterPort,
     .name = "master-port",
     .value = Value::kInteger,
     .variable = Variable::kPet,
     .group = Group::kRendezvous,
     .metavar = "PORT",
     .help = "With static: MASTER_PORT of the workers, default 29500. On one node without it: a "
             "free port, a new one after each restart."},
    {.id = Id::kLocalAddr,
     .name = "local-addr",
     .variable = Variable::kPet,
     .group = Group::kRendezvous,
     .metavar = "HOST",
     .help = "Address of this node, passed to workers as MASTER_ADDR (standalone and c10d). "
             "Default: the address from which the node reaches the coordinator."},
    {.id = Id::kStoreOpen,
     .name = "store-open",
     .value = Value::kFlag,
     .variable = Variable::kDdprun,
     .group = Group::kRendezvous,
     .help = "Lets every client use the store of the workers, which this node serves if it has "
             "rank 0. Default: only addresses of the nodes, and on this machine only the same "
             "user, root and users that its workers run as."},
    {.id = Id::kHosts,
     .name = "hosts",
     .variable = Variable::kDdprun,
     .group = Group::kRendezvous,
     .metavar = "A,B,C",
     .help = "All nodes, the same list on each: HOST or HOST:PORT. Replaces --nnodes, backend "
             "and endpoint. Each node finds its position by its addresses; the first one runs "
             "the coordinator, on its PORT or 29400."},
    {.id = Id::kAllowDifferentCommands,
     .name = "allow-different-commands",
     .value = Value::kFlag,
     .variable = Variable::kDdprun,
     .group = Group::kRendezvous,
     .help = "Allow nodes of one run to run different commands. Otherwise they are refused, "
             "because two jobs at one endpoint would become one. Pass it on every node of the "
             "run."},
    {.id = Id::kMaxRestarts,
     .name = "max-restarts",
     .value = Value::kInteger,
     .variable = Variable::kPet,
     .group = Group::kRestarts,
     .metavar = "N",
     .preset = "0",
     .help = "Maximum number of times the worker group is restarted after a failure."},
    {.id = Id::kMonitorInterval,
     .name = "monitor-interval",
     .value = Value::kNumber,
     .variable = Variable::kPet,
     .group = Group::kRestarts,
     .metavar = "SECONDS",
     .preset = "0.1",
     .help = "Accepted for torchrun compatibility and ignored: ddprun is event-driven and never "
             "polls."},
    {.id = Id::kShutdownTimeout,
     .name = "shutdown-timeout",
     .variable = Variable::kPet,
     .group = Group::kRestarts,
     .metavar = "TIME",
     .help = "From the stop signal to SIGKILL, at every stop: 90, 90s or 10m. Unset: "
             "TORCH_ELASTIC_SHUTDOWN_TIMEOUT, else 30.",
     .fallback = "TORCH_ELASTIC_SHUTDOWN_TIMEOUT"},
    {.id = Id::kStragglerTimeout,
     .name = "straggler-timeout",
     .variable = Variable::kPet,
     .group = Group::kRestarts,
     .metavar = "TIME",
     .preset = "10",
     .help = "After a success: how long processes that workers left in their process groups may "
             "continue; then SIGTERM, and 2 s later SIGKILL."},
    {.id = Id::kMinUptime,
     .name = "min-uptime",
     .variable = Variable::kPet,
     .group = Group::kRestarts,
     .metavar = "TIME",
     .help = "Ends the run, whatever restarts are left, when two rounds in a row fail in the "
             "same way within this time of their start, for example 60s. Off by default."},
    {.id = Id::kSignalsToHandle,
     .name = "signals-to-handle",
     .variable = Variable::kPet,
     .group = Group::kRestarts,
     .metavar = "NAMES",
     .preset = "SIGTERM,SIGINT,SIGHUP,SIGQUIT",
     .help = "Signals that stop the run; they are forwarded to the workers first."},
    {.id = Id::kFinishTimeout,
     .name = "finish-timeout",
     .variable = Variable::kDdprun,
     .group = Group::kRestarts,
     .metavar = "TIME",
     .help = "How long ranks may continue after the first one on their node exited with code 0, "
             "in seconds or with a unit (30m): then stacks are saved and the round fails. Off by "
             "default."},
    {.id = Id::kHangTimeout,
     .name = "hang-timeout",
     .variable = Variable::kDdprun,
     .group = Group::kRestarts,
     .metavar = "TIME",
     .help = "If no rank uses CPU time, writes or starts a process for this long, in seconds or "
             "with a unit (10m), stacks are saved and the round fails. Off by default."},
    {.id = Id::kRestart,
     .name = "restart",
     .value = Value::kChoice,
     .variable = Variable::kDdprun,
     .group = Group::kRestarts,
     .metavar = "all|failed",
     .preset = "all",
     .choices = "all,failed",
     .help = "Which ranks a restart starts again. failed: ranks that can take a new round "
             "(docs/SURVIVORS.md) keep their process."},
    {.id = Id::kRejoinTimeout,
     .name = "rejoin-timeout",
     .variable = Variable::kDdprun,
     .group = Group::kRestarts,
     .metavar = "TIME",
     .help = "How long a rank that --restart=failed keeps has to take the new round, in seconds "
             "or with a unit (2m): then it is killed and started again. Default 60 s."},
    {.id = Id::kSpares,
     .name = "spares",
     .value = Value::kInteger,
     .variable = Variable::kDdprun,
     .group = Group::kRestarts,
     .metavar = "N",
     .preset = "0",
     .help = "Processes on each node that wait with everything loaded, and take the place of a "
             "rank that is lost, with --restart=failed (docs/SURVIVORS.md)."},
    {.id = Id::kWarm,
     .name = "warm",
     .value = Value::kOptional,
     .variable = Variable::kDdprun,
     .group = Group::kRestarts,
     .metavar = "[=first|demand|force|TIME]",
     .help = "Restarted Python workers skip their imports (docs/WARM.md). A process that imports "
             "what they did is made 30 s, or this time, after the first start; first: before it; "
             "demand: forked only when needed; force: although a GPU is visible. Off by default."},
    {.id = Id::kPreload,
     .name = "preload",
     .variable = Variable::kDdprun,
     .group = Group::kRestarts,
     .metavar = "MODULES",
     .help = "What --warm imports, for example torch,torch._dynamo,transformers. By default what "
             "the workers have imported."},
    {.id = Id::kLogDir,
     .name = "log-dir",
     .variable = Variable::kPet,
     .group = Group::kOutput,
     .metavar = "DIR",
     .help = "Directory of log files: DIR/<run id>_<8>/attempt_<n>/<local rank>/. /dev/null: no "
             "files."},
    {.id = Id::kLogMax,
     .name = "log-max",
     .variable = Variable::kDdprun,
     .group = Group::kOutput,
     .metavar = "SIZE",
     .help = "Size to which each log file is limited, for example 64M or 1G, at least 4M: its "
             "first quarter is kept, and the last three eighths or more in FILE.1 and FILE.2. "
             "Off by default."},
    {.id = Id::kRedirects,
     .name = "redirects",
     .letter = 'r',
     .variable = Variable::kPet,
     .group = Group::kOutput,
     .metavar = "MASK",
     .preset = "0",
     .help = "Streams redirected to files instead of the console: 0 none, 1 stdout, 2 stderr, 3 "
             "both; or per local rank: 0:3,1:2."},
    {.id = Id::kTee,
     .name = "tee",
     .letter = 't',
     .variable = Variable::kPet,
     .group = Group::kOutput,
     .metavar = "MASK",
     .preset = "0",
     .help = "Streams written to files and, with a prefix per line, to the console. As "
             "--redirects."},
    {.id = Id::kLogLinePrefixTemplate,
     .name = "log-line-prefix-template",
     .variable = Variable::kPet,
     .group = Group::kOutput,
     .metavar = "TEXT",
     .help = "Prefix of tee'd lines with ${role_name}, ${local_rank}, ${rank}, ${hostname}. "
             "Default: TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE, otherwise "
             "[${role_name}${local_rank}]:",
     .fallback = "TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE"},
    {.id = Id::kLocalRanksFilter,
     .name = "local-ranks-filter",
     .variable = Variable::kPet,
     .group = Group::kOutput,
     .metavar = "RANKS",
     .help = "Show only these local ranks on the console, for example 0,1."},
    {.id = Id::kDuplicateStdoutFilters,
     .name = "duplicate-stdout-filters",
     .variable = Variable::kPet,
     .group = Group::kOutput,
     .metavar = "TEXTS",
     .help = "Copy tee'd stdout lines that contain one of these texts to filtered_stdout.log. "
             "Separated by commas; ,, is a comma."},
    {.id = Id::kDuplicateStderrFilters,
     .name = "duplicate-stderr-filters",
     .variable = Variable::kPet,
     .group = Group::kOutput,
     .metavar = "TEXTS",
     .help = "The same for stderr and filtered_stderr.log."},
    {.id = Id::kConsole,
     .name = "console",
     .value = Value::kChoice,
     .variable = Variable::kDdprun,
     .group = Group::kOutput,
     .metavar = "raw|quoted|prefix|rank0",
     .choices = "raw,quoted,prefix,rank0",
     .help = "How output of workers is shown. quoted: as they write it, and a failure report can "
             "quote stderr. raw: workers inherit the console, and stderr is not quoted. prefix: "
             "whole lines with host and rank. rank0: stdout of rank 0 as it is, that of other "
             "ranks in log files, stderr as with prefix. NO_COLOR turns colours off. Default: "
             "rank0 where several ranks share a terminal, unless --compat or an option above "
             "says where output goes; otherwise quoted."},
    {.id = Id::kQuiet,
     .name = "quiet",
     .letter = 'q',
     .value = Value::kFlag,
     .variable = Variable::kDdprun,
     .group = Group::kOutput,
     .help = "Write nothing but what the workers write, and warnings and errors."},
    {.id = Id::kVerbose,
     .name = "verbose",
     .letter = 'v',
     .value = Value::kFlag,
     .variable = Variable::kDdprun,
     .group = Group::kOutput,
     .help = "Write each decision of the start with its reason: workers, rendezvous, devices, "
             "threads, console, command, logs, and every setting that was given."},
    {.id = Id::kHttp,
     .name = "http",
     .variable = Variable::kDdprun,
     .group = Group::kOther,
     .metavar = "ADDR:PORT",
     .help = "Serve a health check of ddprun (/healthz) and Prometheus metrics (/metrics) at this "
             "address of the node, for example 127.0.0.1:9400; port 0: a free one, which is "
             "shown. Off by default.",
     .fallback = "TORCHELASTIC_HEALTH_CHECK_PORT"},
    {.id = Id::kEventLogHandler,
     .name = "event-log-handler",
     .variable = Variable::kPet,
     .group = Group::kOther,
     .metavar = "NAME",
     .preset = "null",
     .help = "console: torchrun's events on stderr, one JSON object on a line; null and "
             "dynamic_rendezvous are silent."},
    {.id = Id::kStartMethod,
     .name = "start-method",
     .value = Value::kChoice,
     .variable = Variable::kPet,
     .group = Group::kOther,
     .metavar = "METHOD",
     .preset = "spawn",
     .choices = "spawn,fork,forkserver",
     .help = "Accepted for torchrun compatibility and ignored: every worker is a new process."},
    {.id = Id::kRunPath,
     .name = "run-path",
     .value = Value::kFlag,
     .variable = Variable::kPet,
     .group = Group::kProgram,
     .help = "Run the script by Python's runpy.run_path: an exception that ends it is recorded "
             "in TORCHELASTIC_ERROR_FILE. Takes precedence over --module and --no-python."},
    {.id = Id::kLogsSpecs,
     .name = "logs-specs",
     .group = Group::kOutput,
     .metavar = "default",
     .help = "Accepted for torchrun compatibility, where it names a Python class that lays out "
             "log files: only default, the layout above."},
    {.id = Id::kNumaBinding,
     .name = "numa-binding",
     .value = Value::kChoice,
     .group = Group::kProgram,
     .metavar = "MODE",
     .choices = "node,socket,exclusive,core-complex",
     .help = "Bind each worker to CPUs near its device: those of the NUMA node, of the socket, a "
             "share of the node's cores of its own, or cores with one last cache."},
    {.id = Id::kPrintCompletion,
     .name = "print-completion",
     .value = Value::kChoiceAction,
     .group = Group::kOther,
     .metavar = "SHELL",
     .choices = "bash,zsh,tcsh,fish",
     .help = "Print a completion script for bash, zsh, tcsh or fish."},
    {.id = Id::kDetach,
     .name = "detach",
     .value = Value::kFlag,
     .group = Group::kOther,
     .help = "Continue in the background and return once all workers of this node were started; "
             "the output goes to ddprun-PID.out in --log-dir or the working directory."},
    {.id = Id::kConfig,
     .name = "config",
     .variable = Variable::kDdprun,
     .group = Group::kOther,
     .metavar = "FILE",
     .help = "Take options from a TOML file: their long names, without tables, and arrays for "
             "lists (max-restarts = 3). Command line, variables and scheduler take precedence."},
    {.id = Id::kDryRun,
     .name = "dry-run",
     .value = Value::kFlag,
     .group = Group::kOther,
     .help = "Start nothing, and print what this node would start: nodes, ranks, devices, CPUs, "
             "command and environment of every worker."},
    {.id = Id::kJson,
     .name = "json",
     .value = Value::kFlag,
     .group = Group::kOther,
     .help = "With --dry-run: print it as JSON."},
    {.id = Id::kHelp,
     .name = "help",
     .letter = 'h',
     .value = Value::kAction,
     .group = Group::kOther,
     .help = "Print this text."},
    {.id = Id::kVersion,
     .name = "version",
     .value = Value::kAction,
     .group = Group::kOther,
     .help = "Print the version."},
}};

constexpr bool in_order() {
  for (std::size_t i = 0; i < kOptions.size(); ++i) {
    if (static_cast<std::size_t>(kOptions[i].id) != i) return false;
  }
  return true;
}
static_assert(in_order(), "the table must follow the order of OptionId");

}  // namespace

std::span<const OptionSpec> all_options() {
  return kOptions;
}

const OptionSpec& spec_of(OptionId id) {
  DDPRUN_ASSERT(id < OptionId::kCount);
  return kOptions[static_cast<std::size_t>(id)];
}

}  // namespace ddprun
