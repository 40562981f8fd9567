// CUDA_VISIBLE_DEVICES, parsed like the CUDA driver does. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace ddprun {

/// The GPUs of a machine.
struct GpuTable {
  int count = 0;
  std::vector<std::string> uuids;        // "GPU-...", one per GPU; empty if unknown
  std::vector<std::string> addresses{};  // "0000:dc:00.0", likewise
};

/// The elements of `variable` that select a GPU, in order (nullopt: not set, all GPUs by index). As
/// in the driver, an index is the numeric prefix of an element ("1gpu" is 1), UUIDs may be
/// abbreviated if they are unambiguous, the list ends at the first element that selects no GPU (so
/// "" and "-1" hide all), and a duplicate GPU hides all. A list of MIG ids counts as one device,
/// because CUDA shows only the first to a process.
[[nodiscard]] std::vector<std::string> visible_devices(const std::optional<std::string>& variable,
                                                       const GpuTable& table);

/// The PCI address of each of them; "" for a MIG slice and where the table has none.
[[nodiscard]] std::vector<std::string> visible_addresses(const std::optional<std::string>& variable,
                                                         const GpuTable& table);

/// The positions in `table` of the GPUs that they are on; all where it names a MIG slice, which may
/// be anywhere.
[[nodiscard]] std::vector<int> gpus_of_visible_devices(const std::optional<std::string>& variable,
                                                       const GpuTable& table);

}  // namespace ddprun
