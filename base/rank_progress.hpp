// RankProgress: what the kernel counts of one rank, its leader and all that this has started, and
// the step that it reported. Plain data.
#pragma once

#include <cstdint>

#include "base/clock.hpp"

namespace ddprun {

struct RankProgress {
  Duration cpu{};               // user and system
  std::uint64_t written = 0;    // bytes, to files, pipes and terminals
  std::uint64_t processes = 0;  // differs when a process has started or ended
  std::int64_t step = -1;       // the last that it reported; -1: none
};

}  // namespace ddprun
