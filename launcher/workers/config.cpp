#include "launcher/workers/config.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "base/format.hpp"
#include "launcher/options/values.hpp"

namespace ddprun {

namespace {

// Six workers with a sixth of a CPU each have one.
constexpr double kRounding = 1e-6;

constexpr std::size_t kDevicesShown = 16;

/// "0 (GPU-4f..), 1 (GPU-8a..)".
std::string list_of(const std::vector<GpuDevice>& devices) {
  std::vector<std::string> shown;
  for (const GpuDevice& device : devices) {
    if (shown.size() == kDevicesShown) break;
    const std::string uuid = device.uuid.empty() ? "" : " (" + device.uuid + ")";
    shown.push_back(std::to_string(shown.size()) + uuid);
  }
  return joined(shown) + (devices.size() > kDevicesShown ? ", ..." : "");
}

/// The positions of the devices that `name` may mean.
std::vector<std::size_t> named(const std::string& name, const std::vector<GpuDevice>& visible) {
  std::vector<std::size_t> found;
  if (const auto index = parse_digits(name)) {
    if (*index < visible.size()) found.push_back(static_cast<std::size_t>(*index));
    return found;
  }
  for (std::size_t at = 0; at < visible.size(); ++at) {
    if (visible[at].uuid == name) return {at};
    if (visible[at].uuid.starts_with(name)) found.push_back(at);
  }
  return found;
}

Result<std::vector<GpuDevice>> choose_all(const Origin& option,
                                          const std::vector<GpuDevice>& visible) {
  const auto instances = std::count_if(visible.begin(), visible.end(),
                                       [](const GpuDevice& device) { return device.is_instance; });
  if (instances == 0 || static_cast<std::size_t>(instances) == visible.size()) return visible;
  return usage(option.shown() +
               ": only some GPUs here have MIG, so devices would not be alike: list those that "
               "workers get, of " +
               list_of(visible));
}

/// PyTorch reads a list of indices or one of UUIDs, and ends it at the first of the other kind. A
/// CUDA_VISIBLE_DEVICES that mixes them gives the devices such names: then each gets its UUID.
Result<void> name_alike(std::vector<GpuDevice>& chosen, const Origin& option,
                        const std::string& with) {
  const auto by_uuid = std::count_if(chosen.begin(), chosen.end(),
                                     [](const GpuDevice& each) { return is_gpu_uuid(each.name); });
  if (by_uuid == 0 || static_cast<std::size_t>(by_uuid) == chosen.size()) return {};
  for (GpuDevice& device : chosen) {
    if (device.uuid.empty()) {
      return usage(option.shown() + ": the visible devices" + with +
                   " mix indices and UUIDs, which PyTorch cannot read, and the UUID of " +
                   device.name + " is unknown: make them alike");
    }
    device.name = device.uuid;
  }
  return {};
}

}  // namespace

std::vector<int> threads_of_workers(int workers, const SharedCpus& cpus) {
  std::map<int, int> sharers;  // of a CPU
  for (const CpuSet& set : cpus.bound) {
    for (const int cpu : set) ++sharers[cpu];
  }
  std::vector<int> threads;
  for (int worker = 0; worker < workers; ++worker) {
    double share = static_cast<double>(cpus.allowed) / workers;
    if (!cpus.bound.empty()) {
      share = 0;
      for (const int cpu : cpus.bound.at(static_cast<std::size_t>(worker))) {
        share += 1.0 / sharers.at(cpu);
      }
    }
    if (cpus.quota) share = std::min(share, *cpus.quota / workers);
    threads.push_back(std::max(1, static_cast<int>(std::floor(share + kRounding))));
  }
  return threads;
}

namespace {

using Gpus = std::vector<GpuDevice>;

/// The chosen ones of the `visible` devices, in the order of the list; `variable` is the
/// CUDA_VISIBLE_DEVICES that they are visible with. An error says what is visible.
Result<std::vector<GpuDevice>> choose_gpus(const Origin& option, const GpuChoice& choice,
                                           const std::vector<GpuDevice>& visible,
                                           const std::optional<std::string>& variable) {
  const std::string with = variable ? " (CUDA_VISIBLE_DEVICES=" + *variable + ")" : "";
  if (visible.empty()) {
    return usage(option.shown() + ": no NVIDIA GPU is visible here" + with +
                 "; omit the option to run without");
  }
  std::vector<GpuDevice> chosen;
  std::vector<std::size_t> taken;
  if (choice.names.empty()) {
    auto all = choose_all(option, visible);
    if (!all) return all;
    chosen = std::move(*all);
  }
  for (const std::string& name : choice.names) {
    const auto found = named(name, visible);
    if (found.size() != 1) {
      return usage(option.shown() + ": " + name +
                   (found.empty() ? " is not one" : " may mean several") +
                   " of the devices visible here" + with + ": " + list_of(visible));
    }
    if (std::find(taken.begin(), taken.end(), found.front()) != taken.end()) {
      return usage(option.shown() + ": " + name + " is listed twice, of the devices visible here" +
                   with + ": " + list_of(visible));
    }
    taken.push_back(found.front());
    chosen.push_back(visible[found.front()]);
    if (is_gpu_uuid(name)) chosen.back().name = chosen.back().uuid;
  }
  if (auto alike = name_alike(chosen, option, with); !alike) return alike.error();
  return chosen;
}

/// --gpus; empty without it.
Result<Gpus> chosen_gpus(const WorkerRequest& request, const Machine& machine) {
  if (!request.gpus.value) return Gpus();
  const auto found = machine.environment().find("CUDA_VISIBLE_DEVICES");
  std::optional<std::string> variable;
  if (found != machine.environment().end()) variable = found->second;
  return choose_gpus(request.gpus, *request.gpus.value, machine.choosable_gpus(), variable);
}

Result<int> count_workers(const Setting<WorkerCount>& count, const Gpus& chosen,
                          const Machine& machine) {
  using Kind = WorkerCount::Kind;
  if (count.value.kind == Kind::kNumber) return count.value.number;
  if (count.value.kind == Kind::kCpus) return machine.count_cpus();
  int gpus = static_cast<int>(chosen.size());
  if (chosen.empty() && count.value.kind != Kind::kXpus) gpus = machine.count_gpus();
  if (gpus > 0 && count.value.kind != Kind::kXpus) return gpus;
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

/// Without --gpus more workers than GPUs are accepted, as by torchrun: they may not use any.
Result<void> check_sharing(const WorkerRequest& request, int workers, const Gpus& chosen) {
  const auto devices = static_cast<int>(chosen.size());
  if (chosen.empty() || workers <= devices || request.share_gpus.value) return {};
  return usage(request.count.shown() + ": " + count_text(workers, "worker") + " cannot have " +
               "a device of " + request.gpus.shown() + " each, which has " +
               std::to_string(devices) + "; pass --nproc-per-node=" + std::to_string(devices) +
               ", or --share-gpus if several are to use one");
}

struct Threads {
  std::vector<int> of_ranks{};  // OMP_NUM_THREADS; empty: as inherited
  std::string reason;
};

/// None if the user set it, or if one worker has the machine to itself.
Threads choose_threads(const WorkerRequest& request, int workers, const std::vector<CpuSet>& bound,
                       const Machine& machine) {
  if (machine.environment().contains("OMP_NUM_THREADS")) return {{}, "as inherited"};
  if (workers == 1) return {{}, "one worker has the CPUs to itself"};
  if (request.compat)
    return {std::vector<int>(static_cast<std::size_t>(workers), 1), "as torchrun"};
  const SharedCpus cpus{machine.count_cpus(), machine.cpu_quota(), bound};
  return {threads_of_workers(workers, cpus),
          "a share of " + count_text(cpus.allowed, "CPU") + (cpus.quota ? " and their quota" : "")};
}

/// A process sees only the first MIG instance of a list, and a device that is shared cannot be
/// found by the local rank.
bool sees_one_device(const Gpus& chosen, int workers) {
  const bool instances = std::any_of(chosen.begin(), chosen.end(),
                                     [](const GpuDevice& device) { return device.is_instance; });
  return !chosen.empty() &&
         ((instances && workers > 1) || static_cast<std::size_t>(workers) > chosen.size());
}

/// The device of each local rank, where each sees one (--virtual-local-rank); else empty.
Result<std::vector<std::string>> virtual_devices(const Setting<bool>& option, int workers,
                                                 const Gpus& chosen,
                                                 const Environment& environment) {
  std::vector<std::string> devices;
  if (!option.value && !sees_one_device(chosen, workers)) return devices;
  for (int rank = 0; !chosen.empty() && rank < workers; ++rank) {
    devices.push_back(chosen[static_cast<std::size_t>(rank) % chosen.size()].name);
  }
  if (!chosen.empty()) return devices;
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
                                       const Gpus& chosen, const Machine& machine) {
  if (!option.value) return std::vector<CpuSet>();
  std::vector<std::string> addresses;
  for (const GpuDevice& device : chosen) addresses.push_back(device.address);
  const int devices = chosen.empty() ? workers : static_cast<int>(chosen.size());
  auto cpus = machine.numa_cpus(*option.value, addresses, std::min(workers, devices));
  if (!cpus) return usage(option.shown() + ": " + cpus.error().sentence);
  for (auto rank = cpus->size(); rank < static_cast<std::size_t>(workers); ++rank) {
    const CpuSet shared = (*cpus)[rank - chosen.size()];
    cpus->push_back(shared);
  }
  return cpus;
}

std::vector<std::string> names_of(const Gpus& gpus) {
  std::vector<std::string> names;
  for (const GpuDevice& gpu : gpus) names.push_back(gpu.name);
  return names;
}

}  // namespace

Result<WorkerConfig> configure_workers(const WorkerRequest& request, const Machine& machine) {
  auto gpus = chosen_gpus(request, machine);
  if (!gpus) return gpus.error();
  auto count = count_workers(request.count, *gpus, machine);
  if (!count) return count.error();
  if (auto shared = check_sharing(request, *count, *gpus); !shared) return shared.error();
  auto devices = virtual_devices(request.virtual_local_rank, *count, *gpus, machine.environment());
  if (!devices) return devices.error();
  auto cpus = bound_cpus(request.numa, *count, *gpus, machine);
  if (!cpus) return cpus.error();
  auto command = worker_command(request, machine);
  if (!command) return command.error();
  CommandIdentity identity = identify_command(shown_command(command->argv), machine.host_name());
  Threads threads = choose_threads(request, *count, *cpus, machine);
  return WorkerConfig{*count,
                      request.role,
                      std::move(command->argv),
                      std::move(command->script),
                      std::move(identity),
                      request.commands_may_differ,
                      std::move(threads.of_ranks),
                      names_of(*gpus),
                      std::move(*devices),
                      std::move(*cpus),
                      std::move(command->reason),
                      std::move(threads.reason)};
}

std::vector<std::string> notes_on_devices(const WorkerRequest& request,
                                          const WorkerConfig& workers) {
  if (request.virtual_local_rank.value || workers.virtual_devices.empty()) return {};
  const bool share = static_cast<std::size_t>(workers.count) > workers.gpus.size();
  return {request.gpus.shown() + ": " +
          (share ? "workers share devices" : "CUDA shows a process one MIG instance") +
          ", so each worker sees one device and LOCAL_RANK=0, as with --virtual-local-rank"};
}

WarmConfig configure_warm(const WarmRequest& request, const LaunchConfig& launch,
                          const Machine& machine) {
  WarmConfig config = request.config;
  const auto python = choose_python(machine);
  const std::vector<std::string>& command = launch.workers.command;
  // The interpreter is the one that ddprun chose, with the one option that ddprun gives it: others,
  // such as -E, could keep it from importing the hook, and the template would run the program.
  const bool chosen =
      python && command.size() >= 3 && command[0] == python->path && command[1] == "-u";
  if (chosen && shown_command(command)[2] == "--run-path") {
    config.refused = "--run-path starts a Python program of ddprun's, which runs the script";
    return config;
  }
  if (!chosen || (command[2].starts_with("-") && command[2] != "-m")) {
    config.refused = "the workers do not run under the Python that ddprun chooses, as it runs them";
    return config;
  }
  const bool restarts = launch.stopping.max_restarts > 0 || launch.rendezvous.has_value();
  if (!restarts && !config.first) {
    config.refused = "no worker is ever started again, because --max-restarts is 0";
    return config;
  }
  if (!launch.workers.cpus.empty()) {
    config.refused = "--numa-binding starts each worker on CPUs of its own";
    return config;
  }
  const int gpus = request.force ? 0 : machine.count_gpus();
  if (gpus > 0) {
    config.refused = count_text(gpus, "GPU") + (gpus == 1 ? " is" : " are") +
                     " visible, and a module that uses one while it is imported cannot be shared; "
                     "--warm=force tries it";
  }
  return config;
}

}  // namespace ddprun
