// The file that a program is, and the sentences for one that cannot be started: its first bytes
// tell a missing interpreter from a missing program. Thread rule: one thread.
#pragma once

#include <string>

#include "agent/proc/isolation.hpp"
#include "base/result.hpp"

namespace ddprun {

/// The file that execvp would run for `name` with this PATH (empty: /bin:/usr/bin), as an absolute
/// path, or a kNotFound / kNotExecutable error whose sentence names the path and the reason.
[[nodiscard]] Result<std::string> find_program(const std::string& name, const std::string& path);

/// Whether the script that an interpreter is to run (empty: none) is there; else a kNoScript error.
/// What cannot be looked at is left to the interpreter.
[[nodiscard]] Result<void> find_script(const std::string& path);

/// Whether the interpreter that the first line of a script names can be executed; else the error of
/// execve(program).
[[nodiscard]] Result<void> check_interpreter(const std::string& program);

/// Why a child could not become `program`: kNotFound, kNotExecutable or kSystem.
[[nodiscard]] Error spawn_error(const std::string& program, const SpawnFailure& failure);

/// The error for `what` (the start of a sentence) that failed with `error`; suggests a remedy for
/// common limits.
[[nodiscard]] Error system_refused(const std::string& what, int error);

}  // namespace ddprun
