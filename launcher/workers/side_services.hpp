// Variables that switch on services of torchrun's agent beside the run itself. Pure, no thread
// rule.
#pragma once

#include "base/environment.hpp"
#include "base/result.hpp"

namespace ddprun {

/// Refuses a service that is not built, by its variable: a watchdog that somebody relies on and
/// that is not there is worse than a run that does not start. What torchrun takes as off is off
/// here.
[[nodiscard]] Result<void> check_side_services(const Environment& environment);

}  // namespace ddprun
