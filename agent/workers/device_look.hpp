// device_look: asks the driver which processes hold the GPUs of this node, and /proc who they are.
// Blocks as long as the driver does. Thread rule: any one thread, not the io_context's.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "agent/devices/nvml.hpp"
#include "agent/watch/device_release.hpp"
#include "base/worker_exit.hpp"

namespace ddprun {

/// What has to be known for that.
struct DeviceQuestion {
  std::vector<WorkerName> workers{};             // of the round before, which have ended
  Round round{0};                                // that round
  std::vector<std::string> kept{};               // marks of workers that are in the next round, too
  std::optional<std::string> visible_devices{};  // CUDA_VISIBLE_DEVICES of this node
  std::string nonce{};                           // of this process, in worker_mark()
};

/// Processes of this run on any GPU, others on those that its workers may use.
[[nodiscard]] DeviceHolders device_holders(const Nvml& nvml, const DeviceQuestion& question);

}  // namespace ddprun
