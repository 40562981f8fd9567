// decisions: what a launch comes to and why, for --verbose: from the same values as `ddprun config`
// and --dry-run. Pure. Thread rule: none.
#pragma once

#include <string>
#include <vector>

#include "base/environment.hpp"
#include "launcher/configure.hpp"

namespace ddprun {

/// One line each: what was decided from several facts, then every other setting that was given.
/// `console`: the reason that choose_console() gave; empty: --console was.
[[nodiscard]] std::vector<std::string> decisions(const Launch& launch,
                                                 const Environment& environment,
                                                 const std::string& console);

}  // namespace ddprun
