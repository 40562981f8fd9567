// Counts the devices of a node without creating a CUDA context and without loading CUDA. Thread
// rule: one thread. Errors: none; a device that cannot be found does not count.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "agent/devices/visible_devices.hpp"

namespace ddprun {

// GPUs looked for in /dev and NVML; more are not counted.
inline constexpr int kDevicesMax = 4096;

/// Where to look for devices; tests use other paths.
struct DeviceSources {
  std::string nvml = "libnvidia-ml.so.1";  // loaded with dlopen; empty: not tried
  std::string proc = "/proc/driver/nvidia/gpus";
  std::string dev = "/dev";
};

/// The selector of each GPU that a worker would see with this CUDA_VISIBLE_DEVICES (nullopt: not
/// set): elements of the variable, or "0", "1"... Uses NVML, otherwise /proc, otherwise /dev.
[[nodiscard]] std::vector<std::string> visible_gpus(
    const std::optional<std::string>& cuda_visible_devices, const DeviceSources& sources = {});

/// The number of those GPUs.
[[nodiscard]] int count_gpus(const std::optional<std::string>& cuda_visible_devices,
                             const DeviceSources& sources = {});

/// The PCI address of each of them, "0000:dc:00.0"; "" where it is unknown.
[[nodiscard]] std::vector<std::string> visible_gpu_addresses(
    const std::optional<std::string>& cuda_visible_devices, const DeviceSources& sources = {});

/// What --gpus chooses from (gpu_devices()).
[[nodiscard]] std::vector<GpuDevice> choosable_gpus(
    const std::optional<std::string>& cuda_visible_devices, const DeviceSources& sources = {});

/// CPUs in this process's affinity set; at least 1.
[[nodiscard]] int count_cpus();

}  // namespace ddprun
