#include "launcher/workers/config.hpp"

#include <algorithm>

#include "launcher/options/values.hpp"
#include "launcher/usage.hpp"
#include "launcher/workers/command.hpp"
#include "launcher/workers/command_identity.hpp"
#include "launcher/workers/threads.hpp"

namespace ddprun {
namespace {

Result<int> count_workers(const Setting<WorkerCount>& count, const Machine& machine) {
  using Kind = WorkerCount::Kind;
  if (count.value.kind == Kind::kNumber) return count.value.number;
  if (count.value.kind == Kind::kCpus) return machine.count_cpus();
  const int gpus = count.value.kind == Kind::kXpus ? 0 : machine.count_gpus();
  if (gpus > 0) return gpus;
  if (count.value.kind == Kind::kGpus) {
    return usage(
        count.shown() +
        ": no GPU is visible here; use cpu, auto or a number, or check CUDA_VISIBLE_DEVICES");
  }
  auto xpus = machine.xpus();
  if (!xpus) return usage(count.shown() + ": " + xpus.error().sentence + "; pass a number");
  if (!xpus->empty()) return static_cast<int>(xpus->size());
  if (count.value.kind == Kind::kAuto) return machine.count_cpus();
  return usage(count.shown() +
               ": no XPU is visible here (Level Zero lists none); use cpu, auto or a number, or "
               "check ZE_AFFINITY_MASK and ONEAPI_DEVICE_SELECTOR");
}

/// OMP_NUM_THREADS of each local rank; empty if the user set it, or if one worker has the machine
/// to itself.
std::vector<int> choose_threads(const WorkerRequest& request, int workers,
                                const std::vector<CpuSet>& bound, const Machine& machine) {
  if (workers == 1 || machine.environment().contains("OMP_NUM_THREADS")) return {};
  if (request.compat) return std::vector<int>(static_cast<std::size_t>(workers), 1);
  return threads_of_workers(workers, {machine.count_cpus(), machine.cpu_quota(), bound});
}

/// --virtual-local-rank: the device of each local rank; empty without it.
Result<std::vector<std::string>> virtual_devices(const Setting<bool>& option, int workers,
                                                 const Environment& environment) {
  std::vector<std::string> devices;
  if (!option.value) return devices;
  // On ROCm the first of the two takes precedence.
  const bool hip = !value_or(environment, "HIP_VISIBLE_DEVICES", "").empty();
  const auto visible = environment.find(hip ? "HIP_VISIBLE_DEVICES" : "CUDA_VISIBLE_DEVICES");
  if (visible == environment.end()) {
    for (int rank = 0; rank < workers; ++rank) devices.push_back(std::to_string(rank));
    return devices;
  }
  for (const std::string& device : split_list(visible->second)) {
    devices.emplace_back(trimmed(device));
  }
  if (devices.size() >= static_cast<std::size_t>(workers)) {
    devices.resize(static_cast<std::size_t>(workers));
    return devices;
  }
  return usage(option.name + ": " + std::to_string(workers) +
               " workers need as many devices, but " + visible->first + "=" + visible->second +
               " names " + std::to_string(visible->second.empty() ? 0 : devices.size()));
}

/// --numa-binding: the CPUs of each local rank; empty without it.
Result<std::vector<CpuSet>> bound_cpus(const Setting<std::optional<NumaMode>>& option, int workers,
                                       const Machine& machine) {
  if (!option.value) return std::vector<CpuSet>();
  auto cpus = machine.numa_cpus(*option.value, workers);
  if (!cpus) return usage(option.shown() + ": " + cpus.error().sentence);
  return cpus;
}

}  // namespace

Result<WorkerConfig> configure_workers(const WorkerRequest& request, const Machine& machine) {
  auto count = count_workers(request.count, machine);
  if (!count) return count.error();
  auto devices = virtual_devices(request.virtual_local_rank, *count, machine.environment());
  if (!devices) return devices.error();
  auto cpus = bound_cpus(request.numa, *count, machine);
  if (!cpus) return cpus.error();
  auto command = worker_command(request, machine);
  if (!command) return command.error();
  CommandIdentity identity = identify_command(shown_command(command->argv), machine.host_name());
  auto threads = choose_threads(request, *count, *cpus, machine);
  return WorkerConfig{*count,
                      request.role,
                      std::move(command->argv),
                      std::move(command->script),
                      std::move(identity),
                      request.commands_may_differ,
                      std::move(threads),
                      std::move(*devices),
                      std::move(*cpus)};
}

}  // namespace ddprun
