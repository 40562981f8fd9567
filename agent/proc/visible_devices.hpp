// CUDA_VISIBLE_DEVICES as the CUDA driver reads it. Pure, no thread rule.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace ddprun {

/// The GPUs of a machine.
struct GpuTable {
  int count = 0;
  std::vector<std::string> uuids;  // "GPU-...", one per GPU; empty: not known
};

/// The elements of `variable` that select a GPU, in order (nullopt: not set, all GPUs by index).
/// Like the driver: an index is what the element begins with ("1gpu" is 1), UUIDs may be shortened
/// as long as they are unique, the list ends at the first element that selects nothing (so "" and
/// "-1" hide all), and a GPU named twice hides all. A list of MIG- ids counts as one device: CUDA
/// shows a process only the first.
[[nodiscard]] std::vector<std::string> visible_devices(const std::optional<std::string>& variable,
                                                       const GpuTable& table);

}  // namespace ddprun
