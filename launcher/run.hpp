// run: what `ddprun` does, from its arguments to its exit code. Thread rule: call once, on the
// process's only thread (agent/run.hpp).
#pragma once

#include "launcher/called.hpp"
#include "launcher/this_machine.hpp"

namespace ddprun {

/// `environment`: null-terminated, as in environ. Help and version go to standard output; every
/// message to standard error. Returns the exit code.
/// `user`: the process that the user started (launcher/front).
[[nodiscard]] int run(int argc, const char* const* argv, const char* const* environment,
                      const UserProcess& user, Called called);

}  // namespace ddprun
