// Error sentences for a program that cannot be started. Reads the program's first bytes to
// distinguish a missing interpreter from a missing program. Thread rule: one thread.
#pragma once

#include <string>

#include "agent/proc/isolation.hpp"
#include "base/result.hpp"

namespace ddprun {

/// Why execve(program) failed with `error` (errno): kNotFound, kNotExecutable or kSystem.
[[nodiscard]] Error exec_error(const std::string& program, int error);

/// Whether the interpreter that the first line of a script names can be executed; else the error of
/// execve(program).
[[nodiscard]] Result<void> check_interpreter(const std::string& program);

/// The error for any failure reported by a child.
[[nodiscard]] Error spawn_error(const std::string& program, const SpawnFailure& failure);

/// The error for `what` (the start of a sentence) that failed with `error`; suggests a remedy for
/// common limits.
[[nodiscard]] Error system_refused(const std::string& what, int error);

}  // namespace ddprun
