// The workers of this node: how many, which command, which devices, where their output goes. Pure
// except for the facts that it queries from the machine.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "agent/config/launch_config.hpp"
#include "agent/devices/visible_devices.hpp"
#include "base/result.hpp"
#include "launcher/machine.hpp"
#include "launcher/request/request.hpp"

namespace ddprun {

[[nodiscard]] Result<WorkerConfig> configure_workers(const WorkerRequest& request,
                                                     const Machine& machine);

/// The chosen ones of the `visible` devices, in the order of the list; `variable` is the
/// CUDA_VISIBLE_DEVICES that they are visible with. An error says what is visible.
[[nodiscard]] Result<std::vector<GpuDevice>> choose_gpus(
    const Origin& option, const GpuChoice& choice, const std::vector<GpuDevice>& visible,
    const std::optional<std::string>& variable);

/// That each worker sees one device although nothing said so.
[[nodiscard]] std::vector<std::string> notes_on_devices(const WorkerRequest& request,
                                                        const WorkerConfig& workers);

[[nodiscard]] Result<LogConfig> configure_logs(const LogRequest& request, const Machine& machine);

/// What was given and has no effect with so many workers on this node, as under torchrun.
[[nodiscard]] std::vector<std::string> notes_on_logs(const LogRequest& request,
                                                     const LogConfig& log, int workers);

}  // namespace ddprun
