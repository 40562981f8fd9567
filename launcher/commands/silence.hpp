// A run that does not answer: what is known of it all the same, and what to do. An answer that does
// not come says nothing of the run, whose ranks may hold their GPUs. Thread rule: the launcher's
// thread.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "launcher/commands/runs.hpp"

namespace ddprun::commands {

/// `why`: how its answer failed to come. `name`: what the user calls it.
[[nodiscard]] std::string silence_text(const FoundRun& run, const std::string& name,
                                       const std::string& why);
/// The same on standard error. Returns kCommandSilent.
int fail_silent(const FoundRun& run, const std::string& name, const std::string& why = "");

/// The processes that users started as ddprun, of this user, as /proc shows them.
[[nodiscard]] std::vector<pid_t> running_fronts();

}  // namespace ddprun::commands
