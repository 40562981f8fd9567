// One function for each command, for the table. Each takes the words after its name, writes to
// standard output, reports errors on standard error, and returns the exit code.
#pragma once

#include <string>
#include <vector>

#include "base/environment.hpp"

namespace ddprun::commands {

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
