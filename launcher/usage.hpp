// The errors of a command line: a mistake, or what is not supported yet. Pure.
#pragma once

#include <string>
#include <utility>

#include "base/result.hpp"

namespace ddprun {

/// Exit code 2.
[[nodiscard]] inline Error usage(std::string sentence) {
  return {ErrorKind::kUsage, std::move(sentence)};
}

/// Exit code 2. `instead`: what works, "null works".
[[nodiscard]] inline Error unsupported(const std::string& what, const std::string& instead) {
  return {ErrorKind::kUnsupported, what + " is not supported yet; " + instead};
}

}  // namespace ddprun
