// The look of the console: what --console is where it was not given. Pure. Thread rule: none.
#pragma once

#include <string>

#include "agent/config/launch_config.hpp"
#include "base/environment.hpp"

namespace ddprun {

/// rank0 where several ranks share a terminal. What is piped or redirected looks as under torchrun,
/// and so does what the user arranges with torchrun's options for output, or asks for with
/// --compat. Colours: on a terminal, without NO_COLOR. `on_terminal`: stdout and stderr are one.
/// Returns the reason in words; empty where --console was given.
std::string choose_console(LaunchConfig& config, const Environment& environment, bool on_terminal);

/// Whether a terminal may show a line that is redrawn. Not below workers that write there
/// themselves.
[[nodiscard]] bool may_draw_waits(const LogConfig& log, const Environment& environment);

}  // namespace ddprun
