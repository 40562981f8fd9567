// The sentences of a program that cannot be started. Reads the program's first bytes to tell a
// missing interpreter from a missing program. Thread rule: one thread.
#pragma once

#include <string>

#include "agent/proc/isolation.hpp"
#include "base/result.hpp"

namespace ddprun {

/// Why execve(program) failed with `error` (errno): kNotFound, kNotExecutable or kSystem.
[[nodiscard]] Error exec_error(const std::string& program, int error);

/// Any failure that a child reported.
[[nodiscard]] Error spawn_error(const std::string& program, const SpawnFailure& failure);

/// `what` (an unfinished sentence) was refused with `error`; says what to try for the common
/// limits.
[[nodiscard]] Error system_refused(const std::string& what, int error);

}  // namespace ddprun
