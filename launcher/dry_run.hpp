// What --dry-run prints: the workers that a command line would start, for people and as JSON.
#pragma once

#include <string>

#include "agent/preview.hpp"
#include "base/environment.hpp"
#include "base/result.hpp"
#include "launcher/configure.hpp"

namespace ddprun {

/// Pure. Ends with a newline.
[[nodiscard]] std::string dry_run_text(const Preview& preview);
/// One JSON object and a newline; docs/COMMANDS.md lists its members. Pure.
[[nodiscard]] std::string dry_run_json(const Preview& preview);

/// The one of both that was asked for. Looks the program up, with the errors of find_program().
[[nodiscard]] Result<std::string> dry_run(const Launch& launch, const Environment& environment);

}  // namespace ddprun
