// What a worker is started with, and whether a template that was started with something else can
// stand in for it. Pure, no thread rule.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/environment.hpp"

namespace ddprun::warm {

struct Start {
  std::string program{};  // its path
  std::vector<std::string> argv{};
  Environment environment{};  // complete
  /// What a process inherits: "working directory" -> "/data", "umask" -> "0022".
  std::map<std::string, std::string> inherited{};
};

/// Whether a variable differs by design from rank to rank or from round to round: a template has
/// none of these.
[[nodiscard]] bool is_late(std::string_view name);

/// The environment that a worker and its template have in common.
[[nodiscard]] Environment common_environment(const Environment& environment);

/// What `wanted` has that a worker forked from `made` would not have: "OMP_NUM_THREADS", "the
/// working directory". Empty: nothing.
[[nodiscard]] std::string difference(const Start& made, const Start& wanted);

}  // namespace ddprun::warm
