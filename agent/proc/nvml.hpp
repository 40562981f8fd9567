// NVML, the driver's management library, loaded at run time: it lists the GPUs without creating a
// CUDA context. Thread rule: one thread.
#pragma once

#include <optional>
#include <string>

#include "agent/proc/visible_devices.hpp"

namespace ddprun {

/// The GPUs that this process may open; nullopt if the library or the driver is missing.
[[nodiscard]] std::optional<GpuTable> gpus_by_nvml(const std::string& library);

}  // namespace ddprun
