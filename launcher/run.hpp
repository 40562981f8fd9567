// run: what `ddprun` does, from its arguments to its exit code. Thread rule: call once, on the
// process's only thread (agent/run.hpp).
#pragma once

namespace ddprun {

/// `environment`: null-terminated, as in environ. Help and version go to standard output; every
/// message to standard error. Returns the exit code.
/// `user_pid`: of the process that the user started, for commands on the run.
[[nodiscard]] int run(int argc, const char* const* argv, const char* const* environment,
                      int user_pid);

}  // namespace ddprun
