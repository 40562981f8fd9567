// The commands of ddprun, most of which act on a run that is there already: `ddprun ps`, `ddprun
// stop RUN`. Everything else on a command line starts a run. Thread rule: the launcher's thread.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/environment.hpp"
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

namespace ddprun::commands {

// One function for each command, for the table. Each takes the words after its name, writes to
// standard output, reports errors on standard error, and returns the exit code.

using Arguments = std::vector<std::string>;

int attach(const Arguments& arguments, const Environment& environment);
int config(const Arguments& arguments, const Environment& environment);
int ps(const Arguments& arguments, const Environment& environment);
int status(const Arguments& arguments, const Environment& environment);
int secret(const Arguments& arguments, const Environment& environment);
int signal(const Arguments& arguments, const Environment& environment);
int stacks(const Arguments& arguments, const Environment& environment);
int explain_run(const Arguments& arguments, const Environment& environment);
int stop(const Arguments& arguments, const Environment& environment);

// What a command writes. Thread rule: the launcher's thread.

/// To standard output. Returns the exit code.
int print(const std::string& text);
/// A note to standard error.
void note(const std::string& sentence);
/// An error message to standard error. Returns kCommandFailed.
int fail(const std::string& sentence, const std::string& code = "CONTROL");
/// The same for arguments that are wrong. Returns 2.
int misuse(const std::string& sentence);

}  // namespace ddprun::commands
