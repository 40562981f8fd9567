// --gpus: which devices of this node the workers get. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "agent/devices/visible_devices.hpp"
#include "base/result.hpp"
#include "launcher/request.hpp"

namespace ddprun {

/// "all", or a list of indices, or one of UUIDs.
[[nodiscard]] Result<GpuChoice> parse_gpus(const Origin& origin);

/// The chosen ones of the `visible` devices, in the order of the list; `variable` is the
/// CUDA_VISIBLE_DEVICES that they are visible with. An error says what is visible.
[[nodiscard]] Result<std::vector<GpuDevice>> choose_gpus(
    const Origin& option, const GpuChoice& choice, const std::vector<GpuDevice>& visible,
    const std::optional<std::string>& variable);

}  // namespace ddprun
