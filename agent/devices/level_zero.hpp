// Intel's GPUs ("XPU"), as the driver's library Level Zero lists them: loaded at run time, without
// a context on a device. It reads ZE_AFFINITY_MASK and ZE_FLAT_DEVICE_HIERARCHY itself. Thread
// rule: one thread. Errors: none; a device that cannot be asked does not count.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ddprun {

inline constexpr const char* kLevelZeroLibrary = "libze_loader.so.1";

/// The PCI address of each GPU that PyTorch would use, "0000:dc:00.0", "" where it is unknown: the
/// discrete ones of the first driver that has any, or else the integrated ones.
[[nodiscard]] std::vector<std::string> level_zero_gpus(
    const std::string& library = kLevelZeroLibrary);

/// The positions, of `count` GPUs, that ONEAPI_DEVICE_SELECTOR leaves: "level_zero:0,2",
/// "level_zero:gpu", "*:*", or empty: all. nullopt for any other text.
[[nodiscard]] std::optional<std::vector<int>> selected_xpus(std::string_view selector, int count);

}  // namespace ddprun
