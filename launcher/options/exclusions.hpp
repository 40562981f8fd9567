// Options of the file of --config that one of the command line or of a variable excludes. Pure.
#pragma once

#include <string>
#include <vector>

#include "launcher/options/settings.hpp"

namespace ddprun {

/// Leaves out each option of the file that could not stand beside what takes precedence over it, as
/// standalone beside --nnodes=2. Returns a note for each. Two that exclude each other and are both
/// of the file, or both not, stay: they are refused where they are used.
std::vector<std::string> leave_out_excluded(Settings& settings);

}  // namespace ddprun
