// The CPU program does not link CUDA libraries, which halves its start-up time; if a device is
// present it executes the CUDA program in the same folder. Includes no torch header. Errors:
// UsageError.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "trainer/options/options.hpp"

namespace ddprun::trainer {

struct Machine {
  bool has_device = false;  ///< an NVIDIA device file exists and is not hidden
  std::optional<std::filesystem::path> cuda_program;  ///< <this program>_cuda, if it exists
};

/// `visible_devices`: CUDA_VISIBLE_DEVICES.
[[nodiscard]] Machine inspect_machine(const std::optional<std::string>& visible_devices);

/// The program to execute instead, or nullopt to continue with this one. Pure. Throws if --device
/// cuda is not possible.
[[nodiscard]] std::optional<std::filesystem::path> program_for(DeviceChoice choice,
                                                               const Machine& machine);

/// Calls execv(); throws on failure.
[[noreturn]] void become(const std::filesystem::path& program, char** arguments);

}  // namespace ddprun::trainer
