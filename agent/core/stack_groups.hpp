// stack_groups: ranks by the place where they are, the odd ones first, and the text of a dump for a
// file. Pure, no thread rule.
#pragma once

#include <string>
#include <vector>

#include "base/stacks.hpp"

namespace ddprun {

/// Ranks that are at the same place.
struct StackGroup {
  std::string place{};  // "all_reduce (ddp.py:1523)"
  std::vector<Rank> ranks{};
};

/// Where a rank is: the innermost frame of its Python main thread; else of its native one, without
/// the C library's; else what the kernel says: "stopped (state T)".
[[nodiscard]] std::string place_of(const RankStacks& rank);

/// The smallest group first; of equal ones the one with the lowest rank.
[[nodiscard]] std::vector<StackGroup> group_stacks(const StackDump& dump);

/// "2 ranks: next (loader.py:88): 17, 40; 61 ranks: all_reduce (ddp.py:1523)": every group but the
/// largest with its ranks.
[[nodiscard]] std::string groups_text(const std::vector<StackGroup>& groups);

/// What a file says: the groups, then each rank with all its stacks. `heading`: when, and why.
[[nodiscard]] std::string dump_text(const StackDump& dump, const std::string& heading);

}  // namespace ddprun
