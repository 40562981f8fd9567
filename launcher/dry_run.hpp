// What --dry-run prints: the workers that a command line would start, for people and as JSON.
#pragma once

#include <string>
#include <vector>

#include "agent/coordinate/preview.hpp"
#include "base/environment.hpp"
#include "base/result.hpp"
#include "launcher/configure.hpp"

namespace ddprun {

/// For people, or as one JSON object and a newline (docs/COMMANDS.md lists its members); or the
/// error with which the start would end because the program, its interpreter or its script cannot
/// be run. `log_place`: of LogTree::look().
[[nodiscard]] Result<std::string> dry_run(const Launch& launch, const Environment& environment,
                                          const std::string& log_place);

/// What a launch comes to and why, for --verbose: from the same values as `ddprun config` and
/// --dry-run. One line each: what was decided from several facts, then every other setting that was
/// given. Pure.
/// `console`: the reason that choose_console() gave; empty: --console was.
[[nodiscard]] std::vector<std::string> decisions(const Launch& launch,
                                                 const Environment& environment,
                                                 const std::string& console);

}  // namespace ddprun
