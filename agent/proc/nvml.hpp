// NVML, the driver's management library, loaded at run time: it knows the GPUs and creates no CUDA
// context. Thread rule: one thread.
#pragma once

#include <optional>
#include <string>

#include "agent/proc/visible_devices.hpp"

namespace ddprun {

/// The GPUs this process may open, or nothing when the library or the driver is not there.
[[nodiscard]] std::optional<GpuTable> gpus_by_nvml(const std::string& library);

}  // namespace ddprun
