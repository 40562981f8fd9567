// Counts the processors a node offers to workers, without creating a CUDA context and without
// loading CUDA. Thread rule: one thread. Errors: none; what cannot be found does not count.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace ddprun {

/// Where devices are looked for; tests point it somewhere else.
struct DeviceSources {
  std::string nvml = "libnvidia-ml.so.1";  // loaded with dlopen; empty: not tried
  std::string proc = "/proc/driver/nvidia/gpus";
  std::string dev = "/dev";
};

/// What selects each GPU that a worker would see with this CUDA_VISIBLE_DEVICES (nullopt: the
/// variable is not set): its elements, or "0", "1"... Looked for through NVML, else /proc, else
/// /dev.
[[nodiscard]] std::vector<std::string> visible_gpus(
    const std::optional<std::string>& cuda_visible_devices, const DeviceSources& sources = {});

/// How many those are.
[[nodiscard]] int count_gpus(const std::optional<std::string>& cuda_visible_devices,
                             const DeviceSources& sources = {});

/// CPUs in this process's affinity set; at least 1.
[[nodiscard]] int count_cpus();

}  // namespace ddprun
