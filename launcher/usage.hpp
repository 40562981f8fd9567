// The error of a command line. Pure.
#pragma once

#include <string>
#include <utility>

#include "base/result.hpp"

namespace ddprun {

/// Exit code 2.
[[nodiscard]] inline Error usage(std::string sentence) {
  return {ErrorKind::kUsage, std::move(sentence)};
}

}  // namespace ddprun
