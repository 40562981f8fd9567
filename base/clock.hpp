// The clock of the control plane: monotonic, never compared between machines. Pure cores take a
// TimePoint as an argument; only shells call Clock::now().
#pragma once

#include <chrono>

namespace ddprun {

using Clock = std::chrono::steady_clock;
using TimePoint = Clock::time_point;
using Duration = Clock::duration;

/// Time of day, for people to read, never for decisions.
using WallTime = std::chrono::time_point<std::chrono::system_clock, std::chrono::milliseconds>;

}  // namespace ddprun
