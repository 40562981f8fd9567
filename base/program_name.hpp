// The version of this program, and the name that it was called by, with which its messages begin: a
// link to ddprun may be called torchrun. Thread rule: set once in main(), before anything else.
#pragma once

#include <array>
#include <string>
#include <string_view>

namespace ddprun {

inline constexpr std::string_view kDdprunName = "ddprun";
inline constexpr std::string_view kTorchrunName = "torchrun";
inline constexpr std::string_view kLaunchName = "ddprun-launch";  // of torch.distributed.launch
inline constexpr std::array kProgramNames{kDdprunName, kTorchrunName, kLaunchName};

/// One of kProgramNames; "ddprun" until it is set.
[[nodiscard]] std::string program_name();
void set_program_name(std::string_view name);

// From the top CMakeLists.txt.
inline constexpr const char* kVersion = DDPRUN_VERSION;

}  // namespace ddprun
