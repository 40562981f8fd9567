// Refuses to run on another torch than the program was built for: the libraries load without a
// complaint and the first collective dies of SIGSEGV. Call first in main(). Sees no torch header.
// Errors: UsageError.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace ddprun::trainer {

struct LoadedTorch {
  std::filesystem::path library;  ///< libtorch_cpu.so in this process; empty: not found
  std::string version;            ///< "2.11.0+cu130"; empty: the wheel does not say
};

[[nodiscard]] LoadedTorch loaded_torch();
/// The version in the text of a wheel's version.py, or empty.
[[nodiscard]] std::string version_in(std::string_view version_py);
/// Throws when major or minor differ. An unknown version passes.
void require_torch(const std::string& built_for, const LoadedTorch& loaded);

}  // namespace ddprun::trainer
