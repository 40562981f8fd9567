// progress: what the kernel counts of ranks, for --hang-timeout. One pass over /proc, and one file
// for each process of a rank. Thread rule: none.
#pragma once

#include <sys/types.h>

#include <vector>

#include "base/rank_progress.hpp"

namespace ddprun {

/// Of the processes of each leader: itself and what descends from it. What another user owns, or a
/// process that has ended meanwhile, counts as no more.
[[nodiscard]] std::vector<RankProgress> read_progress(const std::vector<pid_t>& leaders);

}  // namespace ddprun
