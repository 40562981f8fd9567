// Limits of an agent's membership in a run.
#pragma once

#include <chrono>

#include "base/clock.hpp"

namespace ddprun::client {

inline constexpr Duration kRetryMin = std::chrono::milliseconds(50);
inline constexpr Duration kRetryMax = std::chrono::milliseconds(1000);
inline constexpr Duration kCoordinatorTimeout = std::chrono::seconds(60);
// How long a node waits for a coordinator while what names one does not answer. A verdict is kept
// for longer (etcd::kOverKept): each node that comes back hears it.
inline constexpr Duration kAwaitedMax = std::chrono::days(7);
// A new link must bring an answer to the hello within this, or it is tried again.
inline constexpr Duration kConnectMax = std::chrono::seconds(5);
// After a second stop signal the coordinator's last answer is awaited this long.
inline constexpr Duration kHurryMax = std::chrono::seconds(1);
// The coordinator's answer to a leave is awaited so long beyond the time for the workers of all.
inline constexpr Duration kLeaveMargin = std::chrono::seconds(5);
// A wait that is over sooner is not worth a line.
inline constexpr Duration kQuietMax = std::chrono::seconds(3);

}  // namespace ddprun::client
