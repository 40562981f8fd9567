// watch_lines: what the agent says of ranks that exited early. Pure, no thread rule.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "agent/watch/sleep_watch.hpp"
#include "agent/watch/stack_groups.hpp"
#include "agent/watch/timer_table.hpp"
#include "base/clock.hpp"
#include "base/worker_exit.hpp"

namespace ddprun {

/// "rank 3", "ranks 0-2, 4-7".
[[nodiscard]] std::string ranks_text(std::vector<Rank> ranks);

/// Ranks of this node that exited with code 0 while others run.
struct PartialFacts {
  std::vector<Rank> finished{};
  std::vector<WorkerName> running{};
  Duration lasts{};                // since the first of them exited
  std::optional<Duration> left{};  // of --finish-timeout
};
/// `note [PARTIAL] rank 0 exited with code 0 after 5 s; ranks 1-7 still run`.
[[nodiscard]] std::string first_partial_line(const PartialFacts& facts);
/// The same after a minute, with what the others do, and what follows.
[[nodiscard]] std::string second_partial_line(const PartialFacts& facts,
                                              const std::vector<StackGroup>& groups);

/// Of ranks that outlived their grace: "rank 3 did not end in time: its Python stacks are in its
/// stderr".
[[nodiscard]] std::string asked_text(const std::vector<Rank>& ranks);
/// A section that a worker has begun over its link, and that exceeds its time.
struct SectionFacts {
  std::string name{};  // as the worker wrote it
  Duration lasts{};
  Duration limit{};
};

/// Why a round is given up: what follows is evidence from its stacks.
[[nodiscard]] Finding finish_timeout_finding(const PartialFacts& facts, const StackDump& dump);
[[nodiscard]] Finding hang_finding(Duration limit, const StackDump& dump);
/// `sleepers`: not empty.
[[nodiscard]] Finding sleep_finding(const std::vector<Sleeper>& sleepers, const StackDump& dump);
[[nodiscard]] Finding section_finding(const WorkerName& worker, const SectionFacts& section,
                                      const StackDump& dump);
/// `worker`: the rank to which the process of the timer belongs.
[[nodiscard]] Finding timer_finding(const WorkerName& worker, const WorkerTimer& timer,
                                    const StackDump& dump);

/// Where ranks tell which steps they finish: adds the last one of the rank that the finding names,
/// else of the one that is behind, and those of the others. `steps`: of each, -1: none.
void add_steps(Finding& finding, const std::vector<WorkerName>& running,
               const std::vector<std::int64_t>& steps);

}  // namespace ddprun
