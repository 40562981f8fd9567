// The words for what find_culprit() decided. Pure, no thread rule.
#pragma once

#include <string>
#include <vector>

#include "rendezvous/round/culprit.hpp"

namespace ddprun::round {

using Ranks = std::vector<const RankOnHost*>;

// A shorter watch, of a few ticks of the kernel's clock, says nothing about processor time.
inline constexpr std::chrono::milliseconds kCpuWatchedMin{100};

struct Trial {
  const WorkerExit* first = nullptr;     // the first failure, which complained
  const Complaint* complaint = nullptr;  // the one that says most
  Ranks witnesses{};
  Ranks silent{};
  Ranks odd{};            // the culprits; empty: undecided
  bool disagree = false;  // ranks name each other
  int world_size = 1;
};
[[nodiscard]] Finding tell(const Trial& trial);

/// It runs, has no connection to the store, and has not just given up waiting there.
[[nodiscard]] bool is_absent(const RankOnHost& rank);

/// "rank 3", "ranks 0-2, 7".
[[nodiscard]] std::string rank_list(std::vector<int> ranks);

}  // namespace ddprun::round
