// Whether workers may start from a template. Pure except for the facts that it queries from the
// machine.
#pragma once

#include "agent/config/launch_config.hpp"
#include "launcher/machine.hpp"
#include "launcher/request/request.hpp"

namespace ddprun {

/// Refused where the workers are no Python program started by ddprun, nothing is ever restarted, or
/// a GPU is visible.
[[nodiscard]] WarmConfig configure_warm(const WarmRequest& request, const LaunchConfig& launch,
                                        const Machine& machine);

}  // namespace ddprun
