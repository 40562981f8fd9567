// The workers of this node: how many, which command, which devices, where their output goes. Pure
// except for the facts that it queries from the machine.
#pragma once

#include <string>
#include <vector>

#include "agent/core/launch_config.hpp"
#include "base/result.hpp"
#include "launcher/machine.hpp"
#include "launcher/request.hpp"

namespace ddprun {

[[nodiscard]] Result<WorkerConfig> configure_workers(const WorkerRequest& request,
                                                     const Machine& machine);

/// That each worker sees one device although nothing said so.
[[nodiscard]] std::vector<std::string> notes_on_devices(const WorkerRequest& request,
                                                        const WorkerConfig& workers);

/// `workers`: on this node; a filter that can match no worker is refused.
[[nodiscard]] Result<LogConfig> configure_logs(const LogRequest& request, int workers,
                                               const Machine& machine);

}  // namespace ddprun
