// When and how a run is stopped and started again: restarts, the shutdown time-out, the signals
// that stop. Pure, no thread rule.
#pragma once

#include <string>
#include <vector>

#include "agent/core/launch_config.hpp"
#include "base/environment.hpp"
#include "base/result.hpp"
#include "launcher/options/settings.hpp"

namespace ddprun {

struct Stopping {
  StopConfig config;
  std::vector<std::string> notes;  // signal names that nobody knows
};

[[nodiscard]] Result<Stopping> choose_stopping(const Settings& settings,
                                               const Environment& environment);

}  // namespace ddprun
