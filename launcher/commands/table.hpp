// The commands of ddprun, most of which act on a run that is there already: `ddprun ps`, `ddprun
// stop RUN`. Everything else on a command line starts a run. Constant data.
#pragma once

#include <optional>
#include <span>

#include "launcher/options/help.hpp"

namespace ddprun {

/// What all commands exit with, besides 2 for an invalid command line.
inline constexpr int kCommandDone = 0;
inline constexpr int kCommandFailed = 1;  // no such run, or it did not do it
inline constexpr int kCommandSilent = 3;  // the run is there, or may be, and does not answer

[[nodiscard]] std::span<const CommandSpec> all_commands();

/// The exit code, if the first word is exactly the name of a command and no file of that name
/// is in the working directory: a program of that name starts as `./ps`. The arguments are those of
/// main(); messages go to standard error. Call it before anything else: the process is a client.
[[nodiscard]] std::optional<int> run_command(int argc, const char* const* argv,
                                             const char* const* environment);

}  // namespace ddprun
