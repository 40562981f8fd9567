// Refuses to run with a torch version other than the one the program was built for: the libraries
// would load without an error, and the first collective would crash with SIGSEGV. Call first in
// main(). Includes no torch header. Errors: UsageError.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace ddprun::trainer {

struct LoadedTorch {
  std::filesystem::path library;  ///< libtorch_cpu.so in this process; empty: not found
  std::string version;            ///< "2.11.0+cu130"; empty: unknown
};

[[nodiscard]] LoadedTorch loaded_torch();
/// The version in a wheel's version.py, or empty.
[[nodiscard]] std::string version_in(std::string_view version_py);
/// Throws if the major or minor version differs. An unknown version passes.
void require_torch(const std::string& built_for, const LoadedTorch& loaded);

}  // namespace ddprun::trainer
