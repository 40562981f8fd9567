// device_release: which processes on the GPUs of a node a new round waits for, for how long, and
// what is said about them. Pure, no thread rule.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/types.hpp"

namespace ddprun {

// After a round has ended here, the next one waits so long until the driver has released the GPUs.
// A driver that works needs a second or two for 80 GB; what is held longer is rarely released by
// waiting, and ranks of other nodes, which wait meanwhile, time out after minutes.
inline constexpr Duration kDeviceReleaseMax = std::chrono::seconds(10);
// Of this time, what may be a process of another PID namespace is waited for.
inline constexpr Duration kHiddenHolderMax = std::chrono::seconds(1);

/// A process that the driver lists on a GPU, when a round is about to start after another one.
struct DeviceHolder {
  enum class Kind {
    kWorker,    // of an earlier round; it has ended
    kLeft,      // started by such a worker, and lives
    kEnded,     // no process has this pid: the driver has not released it yet
    kHidden,    // the same in a PID namespace: it may be one of another namespace, too
    kStranger,  // not of this run
  };
  int gpu = 0;  // as nvidia-smi counts
  int pid = 0;
  Kind kind = Kind::kStranger;
  unsigned long long bytes = 0;  // of GPU memory; 0: unknown
  std::string name{};            // as ps shows it; empty: unknown
  std::string user{};
  Round round{0};  // of a worker
  Rank rank{0};    // of a worker
};
using DeviceHolders = std::vector<DeviceHolder>;

/// What a new round waits for after `waited`.
[[nodiscard]] DeviceHolders waited_for(const DeviceHolders& holders, Duration waited);
/// What is not of this run, or cannot be told apart from that.
[[nodiscard]] DeviceHolders strangers_among(const DeviceHolders& holders, Duration waited);

/// "GPU 0: pid 4182 (rank 3 of round 1, 71.6 GiB); GPU 1: ..." of the first few.
[[nodiscard]] std::string holders_text(const DeviceHolders& holders);

/// `note [GPU] waiting up to 10 s until GPUs are released: ...`.
[[nodiscard]] std::string gpu_wait_line(const DeviceHolders& held);
/// `note [GPU] GPUs released after 2.3 s`.
[[nodiscard]] std::string gpu_released_line(Duration waited);
/// `warning [GPU] not released after 10 s: ...; round 2 starts anyway`.
[[nodiscard]] std::string gpu_held_line(const DeviceHolders& held, Duration waited, Round next);
/// `note [GPU] also used by others: ...`.
[[nodiscard]] std::string gpu_strangers_line(const DeviceHolders& strangers);
/// `warning [GPU] GPU 1 is lost`: once for each.
[[nodiscard]] std::string gpu_lost_line(int gpu);
/// The library, or the driver below it, hangs.
[[nodiscard]] std::string gpu_no_answer_line(Duration waited, Round next);

}  // namespace ddprun
