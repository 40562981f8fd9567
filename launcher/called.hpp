// How ddprun was called: under a link called torchrun it is that program, under ddprun-launch it is
// torch.distributed.launch. Pure.
#pragma once

#include <string_view>

#include "base/program_name.hpp"

namespace ddprun {

enum class Called {
  kDdprun,
  kTorchrun,  // no commands such as `ddprun ps`: every first word is a script
  kLaunch,    // likewise, and a worker gets its local rank as an argument, too
};

/// By the last part of main()'s first argument.
[[nodiscard]] constexpr Called called_as(std::string_view program) {
  const std::string_view name = program.substr(program.rfind('/') + 1);  // npos + 1 is 0
  if (name == kTorchrunName) return Called::kTorchrun;
  return name == kLaunchName ? Called::kLaunch : Called::kDdprun;
}

[[nodiscard]] constexpr std::string_view name_of(Called called) {
  if (called == Called::kTorchrun) return kTorchrunName;
  return called == Called::kLaunch ? kLaunchName : kDdprunName;
}

}  // namespace ddprun
