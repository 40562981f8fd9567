// stack_groups: the ranks of a dump by the place where they are, and its text for a file. Pure, no
// thread rule.
#pragma once

#include <string>
#include <vector>

#include "base/stack_groups.hpp"
#include "base/stacks.hpp"

namespace ddprun {

/// Where a rank is: the innermost frame of its Python main thread; else of its native one, without
/// the C library's; else what the kernel says: "stopped (state T)".
[[nodiscard]] std::string place_of(const RankStacks& rank);

/// Without the ranks that had exited before their stacks were read.
[[nodiscard]] StackDump living(StackDump dump);

/// Sorted.
[[nodiscard]] std::vector<StackGroup> group_stacks(const StackDump& dump);

/// Of each process that ended without success and was not waited for: "rank 1 (pid 33): its child
/// 34 (python3) ended with SIGKILL and was not waited for".
[[nodiscard]] std::vector<std::string> ended_children(const StackDump& dump);

/// What a file says: the groups, then each rank with all its stacks. `heading`: when, and why.
[[nodiscard]] std::string dump_text(const StackDump& dump, const std::string& heading);

}  // namespace ddprun
