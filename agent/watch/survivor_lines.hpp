// survivor_lines: what the user reads of ranks that keep their process over a change of the round.
// Pure.
#pragma once

#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/exit_status.hpp"
#include "base/types.hpp"
#include "base/worker_exit.hpp"

namespace ddprun {

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
