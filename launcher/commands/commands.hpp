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

}  // namespace ddprun::commands
