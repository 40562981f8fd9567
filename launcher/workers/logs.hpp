// The log options: which streams go where, who reaches the console, what is duplicated. Pure but
// for the facts it asks the machine. No thread rule.
#pragma once

#include <optional>
#include <string>

#include "agent/core/launch_config.hpp"
#include "base/result.hpp"
#include "launcher/machine.hpp"
#include "launcher/options/settings.hpp"

namespace ddprun {

/// `workers`: on this node; a filter that can match no worker is refused.
[[nodiscard]] Result<LogConfig> choose_logs(const Settings& settings, int workers,
                                            const Machine& machine);

/// "0".."3", or RANK:MASK(,RANK:MASK)* where ranks that are not named get 0. Nothing for any other
/// text.
[[nodiscard]] std::optional<StreamChoice> parse_streams(const std::string& text);

}  // namespace ddprun
