// The options below "Workers and program" in --help.
#include <array>

#include "base/limits.hpp"
#include "launcher/request/rows.hpp"

namespace ddprun {
namespace {

template <auto read, auto member>
constexpr auto to_workers = put<read, &Request::workers, member>;

Result<GpuChoice> parse_gpus(const Origin& origin) {
  GpuChoice choice;
  if (origin.text == "all") return choice;
  for (const std::string& part : split_list(origin.text)) {
    choice.names.emplace_back(trimmed(part));
    const std::string& name = choice.names.back();
    if (!is_gpu_uuid(name) && !parse_digits(name)) {
      return usage(origin.quoted() +
                   " is neither all nor a list of indices (0,2) or UUIDs (GPU-..., MIG-...)");
    }
    if (is_gpu_uuid(name) != is_gpu_uuid(choice.names.front())) {
      return usage(origin.shown() + " mixes indices and UUIDs, which PyTorch cannot read: use one");
    }
  }
  return choice;
}

/// Without --nproc-per-node the workers are as many as the chosen devices, whatever a scheduler
/// says.
Result<void> take_gpus(const Given& given, Request& request) {
  WorkerRequest& asked = request.workers;
  if (given.given) {
    auto choice = parse_gpus(given);
    if (!choice) return choice.error();
    asked.gpus = {given.origin(), std::move(*choice)};
  }
  if (!asked.gpus.value) {
    if (!asked.share_gpus.value || !given.settings.on_command_line(Id::kShareGpus)) return {};
    return usage(asked.share_gpus.name + " needs --gpus, which says what is shared");
  }
  if (!asked.count.given) asked.count = {given.origin(), {WorkerCount::Kind::kGpus}};
  return {};
}

/// Its value is one of the choices.
Result<std::optional<NumaMode>> read_numa(const Given& given) {
  constexpr std::array<std::pair<std::string_view, NumaMode>, 4> kModes{
      {{"node", NumaMode::kNode},
       {"socket", NumaMode::kSocket},
       {"exclusive", NumaMode::kExclusive},
       {"core-complex", NumaMode::kCoreComplex}}};
  for (const auto& [name, mode] : kModes) {
    if (given.text == name) return std::optional(mode);
  }
  return std::optional<NumaMode>();
}

constexpr OptionSpec kProgramRows[]{
    {.id = Id::kNprocPerNode,
     .name = "nproc-per-node",
     .variable = Variable::kPet,
     .metavar = "N|cpu|gpu|xpu|auto",
     .preset = "1",
     .help = "Workers on this node: a number, cpu, gpu or xpu (one per device; xpu: Intel's "
             "GPUs), or auto (one per GPU or XPU, or per CPU if there is neither).",
     .brief = "workers on this node; default 1",
     .take = to_workers<parse_worker_count, &WorkerRequest::count>},
    {.id = Id::kRole,
     .name = "role",
     .variable = Variable::kPet,
     .metavar = "NAME",
     .preset = "default",
     .help = "Role of the workers: ROLE_NAME in their environment, and the beginning of the "
             "prefix of tee'd lines. May be empty.",
     .take = to_workers<as_text, &WorkerRequest::role>},
    {.id = Id::kVirtualLocalRank,
     .name = "virtual-local-rank",
     .value = Value::kFlag,
     .variable = Variable::kPet,
     .help = "Each worker sees LOCAL_RANK=0 and one device; DDPRUN_LOCAL_RANK is its real local "
             "rank.",
     .yields_to = {{Id::kSpares}},
     .take = to_workers<as_flag, &WorkerRequest::virtual_local_rank>},
    {.id = Id::kShareGpus,
     .name = "share-gpus",
     .value = Value::kFlag,
     .help = "Allow more workers than --gpus has devices: each sees one of them, and "
             "LOCAL_RANK=0.",
     .take = to_workers<as_flag, &WorkerRequest::share_gpus>},
    {.id = Id::kGpus,
     .name = "gpus",
     .metavar = "all|LIST",
     .help = "NVIDIA GPUs or MIG instances of this node for its workers, 2,4,7 or by UUID: their "
             "CUDA_VISIBLE_DEVICES. Indices count what is visible now. Without --nproc-per-node: "
             "one worker for each.",
     .brief = "GPUs of this node for its workers",
     .unset = "all",
     .take = take_gpus},
    {.id = Id::kCompat,
     .name = "compat",
     .value = Value::kFlag,
     .help = "Where ddprun has a default of its own, use torchrun's: OMP_NUM_THREADS=1 for "
             "several workers instead of a share of the CPUs.",
     .take = to_workers<as_flag, &WorkerRequest::compat>},
    {.id = Id::kUseEnv,
     .name = "use-env",
     .value = Value::kFlag,
     .variable = Variable::kNone,
     .help = "For ddprun-launch, which is torch.distributed.launch: pass the local rank in the "
             "environment only, as ddprun always does, not as --local-rank as well.",
     .for_torchrun = true},
    {.id = Id::kModule,
     .name = "module",
     .letter = 'm',
     .value = Value::kFlag,
     .variable = Variable::kPet,
     .help = "Run the program as a Python module: python -u -m PROGRAM.",
     .brief = "run the program as a Python module",
     .yields_to = {{Id::kNoPython}},
     .take = to_workers<as_flag, &WorkerRequest::module>},
    {.id = Id::kNoPython,
     .name = "no-python",
     .value = Value::kFlag,
     .variable = Variable::kPet,
     .help = "Run the program directly, looked up in PATH. Not required for programs that are "
             "not Python.",
     .yields_to = {{Id::kModule}},
     .take = to_workers<as_flag, &WorkerRequest::no_python>},
    {.id = Id::kRunPath,
     .name = "run-path",
     .value = Value::kFlag,
     .variable = Variable::kPet,
     .help = "Run the script by Python's runpy.run_path: an exception that ends it is recorded "
             "in TORCHELASTIC_ERROR_FILE. Takes precedence over --module and --no-python.",
     .yields_to = {{Id::kModule}, {Id::kNoPython}},
     .take = to_workers<as_flag, &WorkerRequest::run_path>},
    {.id = Id::kNumaBinding,
     .name = "numa-binding",
     .value = Value::kChoice,
     .variable = Variable::kNone,
     .metavar = "MODE",
     .choices = "node,socket,exclusive,core-complex",
     .help = "Bind each worker to CPUs near its device: those of the NUMA node, of the socket, a "
             "share of the node's cores of its own, or cores with one last cache.",
     .yields_to = {{Id::kSpares}},
     .take = to_workers<read_numa, &WorkerRequest::numa>},
};

}  // namespace

std::span<const OptionSpec> program_options() {
  return kProgramRows;
}

bool is_gpu_uuid(const std::string& name) {
  return name.starts_with("GPU-") || name.starts_with("MIG-");
}

Result<WorkerCount> parse_worker_count(const Origin& origin) {
  using Kind = WorkerCount::Kind;
  if (origin.text == "cpu") return WorkerCount{Kind::kCpus};
  if (origin.text == "gpu") return WorkerCount{Kind::kGpus};
  if (origin.text == "auto") return WorkerCount{Kind::kAuto};
  if (origin.text == "xpu") return WorkerCount{Kind::kXpus};
  const auto number = parse_integer(origin.text);
  if (!number || *number < 1 || *number > kWorkersPerNodeMax) {
    return usage(origin.quoted() + " is neither cpu, gpu, xpu, auto nor a number from 1 to " +
                 std::to_string(kWorkersPerNodeMax));
  }
  return WorkerCount{Kind::kNumber, static_cast<int>(*number)};
}

}  // namespace ddprun
