// watch_lines: what the agent says of ranks that exited early, hang or sleep, and of those that
// keep their process over a change of the round. Pure, no thread rule.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "agent/watch/rank_watches.hpp"
#include "agent/watch/stack_groups.hpp"
#include "agent/watch/timer_table.hpp"
#include "base/clock.hpp"
#include "base/exit_status.hpp"
#include "base/types.hpp"
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

/// What is said of ranks that wait: `shown`, those whose hidden stdout is shown meanwhile.
[[nodiscard]] std::string input_text(const std::vector<Rank>& waiting,
                                     const std::vector<Rank>& shown);

/// Of ranks that outlived their grace: "rank 3 did not end in time: its Python stacks are in its
/// stderr".
[[nodiscard]] std::string asked_text(const std::vector<Rank>& ranks);
/// A section that a worker has begun over its link, and that exceeds its time.
struct SectionFacts {
  std::string name{};  // as the worker wrote it
  Duration lasts{};
  Duration limit{};
};

/// The exception that a rank printed last, which did not end its process.
struct RankException {
  WorkerName worker{};
  std::string exception{};  // behind kInThread one of a thread
};

/// Why a round is given up: what follows is evidence from its stacks.
[[nodiscard]] Finding finish_timeout_finding(const PartialFacts& facts, const StackDump& dump);
[[nodiscard]] Finding hang_finding(Duration limit, const StackDump& dump,
                                   const std::vector<RankException>& raised = {});
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

/// `note [RECOVER] round 2: rank 3 started again, 7 ranks kept, 12 ms`.
/// With ranks that spares took: `... rank 3 taken by a spare, 7 ranks kept, 4 ms`.
struct RecoveredRanks {
  std::vector<Rank> started{};
  std::vector<Rank> from_spares{};
  int kept = 0;
};
[[nodiscard]] std::string recovered_line(Round round, RecoveredRanks ranks, Duration took);
/// `note [RECOVER] round 2: rank 1 (pid 4182) did not take it within 60 s; killed and started
/// again`.
[[nodiscard]] std::string not_joined_line(Round round, const WorkerName& worker, Duration limit);
/// `note [RECOVER] round 2: rank 1 (pid 4182) could not be told of it, since its link had ended,
/// and did not end within 2 s; killed and started again`.
[[nodiscard]] std::string untold_line(Round round, const WorkerName& worker, Duration limit);
/// `note [RECOVER] round 2: rank 1 (pid 4182) ended before it took it (exit code 1); started
/// again`.
[[nodiscard]] std::string lost_survivor_line(Round round, const WorkerName& worker,
                                             const ExitStatus& status);

/// `warning [SPARE] spare 1 (pid 4182) ended (exit code 1) before it waited for a place; ...`.
[[nodiscard]] std::string unready_spare_line(int spare, int pid, const ExitStatus& status);
/// `note [SPARE] spare 1 (pid 4182) ended while it waited (SIGKILL); ...`.
[[nodiscard]] std::string lost_spare_line(int spare, int pid, const ExitStatus& status);
[[nodiscard]] std::string spare_not_started_line(const std::string& why);
[[nodiscard]] std::string no_spare_line();

}  // namespace ddprun
