#include "launcher/workers/count.hpp"

#include <algorithm>

#include "base/limits.hpp"
#include "launcher/options/numbers.hpp"
#include "launcher/usage.hpp"
#include "launcher/workers/lists.hpp"

namespace ddprun {
namespace {

using Id = OptionId;

Result<int> gpus(const Settings& settings, const Machine& machine) {
  const int count = machine.count_gpus();
  if (count > 0) return count;
  return usage(
      settings.shown(Id::kNprocPerNode) +
      ": no GPU is visible here; use cpu, auto or a number, or check CUDA_VISIBLE_DEVICES");
}

}  // namespace

Result<int> count_workers(const Settings& settings, const Machine& machine) {
  const std::string& text = settings.text(Id::kNprocPerNode);
  if (text == "cpu") return machine.count_cpus();
  if (text == "gpu") return gpus(settings, machine);
  if (text == "auto") {
    const int count = machine.count_gpus();
    return count > 0 ? count : machine.count_cpus();
  }
  if (text == "xpu") {
    return Error{ErrorKind::kUnsupported,
                 settings.shown(Id::kNprocPerNode) +
                     " is not supported yet; cpu, gpu, auto and numbers work"};
  }
  const auto number = parse_integer(text);
  if (!number || *number < 1 || *number > kWorkersPerNodeMax) {
    return usage(settings.named(Id::kNprocPerNode) + "='" + text +
                 "' is neither cpu, gpu, auto nor a number from 1 to " +
                 std::to_string(kWorkersPerNodeMax));
  }
  return static_cast<int>(*number);
}

std::optional<int> choose_threads(int workers, const Machine& machine) {
  if (workers == 1 || machine.environment().contains("OMP_NUM_THREADS")) return std::nullopt;
  return std::max(1, machine.count_cpus() / workers);
}

Result<std::vector<std::string>> virtual_devices(const Settings& settings, int workers,
                                                 const Environment& environment) {
  std::vector<std::string> devices;
  if (!settings.on(Id::kVirtualLocalRank)) return devices;
  // On ROCm the one of the two beats the other.
  const bool hip = !value_or(environment, "HIP_VISIBLE_DEVICES", "").empty();
  const auto visible = environment.find(hip ? "HIP_VISIBLE_DEVICES" : "CUDA_VISIBLE_DEVICES");
  if (visible == environment.end()) {
    for (int rank = 0; rank < workers; ++rank) devices.push_back(std::to_string(rank));
    return devices;
  }
  for (const std::string& device : split_list(visible->second))
    devices.emplace_back(trimmed(device));
  if (devices.size() >= static_cast<std::size_t>(workers)) {
    devices.resize(static_cast<std::size_t>(workers));
    return devices;
  }
  return usage(settings.named(Id::kVirtualLocalRank) + ": " + std::to_string(workers) +
               " workers need as many devices, but " + visible->first + "=" + visible->second +
               " names " + std::to_string(visible->second.empty() ? 0 : devices.size()));
}

}  // namespace ddprun
