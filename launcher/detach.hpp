// --detach: the run continues in the background, and the command returns once all its workers were
// started. Thread rule: call it from main(), before anything else.
#pragma once

#include <optional>

#include "launcher/machine/this_machine.hpp"

namespace ddprun {

/// Where --detach is among the options: the exit code of the command in its own process; in that of
/// the run none, and `user` is that process, with the descriptor that gets the run id once all
/// workers of this node were started. The arguments are those of main().
[[nodiscard]] std::optional<int> detach(int argc, const char* const* argv,
                                        const char* const* environment, UserProcess& user);

}  // namespace ddprun
