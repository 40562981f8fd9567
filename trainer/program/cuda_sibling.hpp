// The CPU program links no CUDA library, so that it starts in half the time; where a device is
// there it hands over to the CUDA program beside it. Sees no torch header. Errors: UsageError.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "trainer/options/options.hpp"

namespace ddprun::trainer {

struct Machine {
  bool has_device = false;  ///< an NVIDIA device file exists and is not hidden
  std::optional<std::filesystem::path> cuda_program;  ///< <this program>_cuda, if it is there
};

/// `visible_devices`: CUDA_VISIBLE_DEVICES.
[[nodiscard]] Machine look_at_machine(const std::optional<std::string>& visible_devices);

/// The program to become instead, or nothing: go on here. Pure. Throws when --device cuda cannot be
/// had.
[[nodiscard]] std::optional<std::filesystem::path> program_for(DeviceChoice choice,
                                                               const Machine& machine);

/// execv; returns only by throwing.
[[noreturn]] void become(const std::filesystem::path& program, char** arguments);

}  // namespace ddprun::trainer
