// culprit: who is to blame when the first failure of a round is a witness, a rank that gave up
// because of another one. The culprit is often silent: it is stopped, sleeps, exited with 0 or
// never arrived. Decides from the facts of all ranks; says "undecided" where they do not decide.
// Pure, no thread rule.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/store_facts.hpp"
#include "base/worker_exit.hpp"

namespace ddprun::round {

/// One rank of the failed round, on its host.
struct RankOnHost {
  RankFacts facts{};
  std::string host{};
  std::optional<StoreWait> wait{};  // what it waits for in the store
};

/// Finds the rank of each client that waits in the store; the longest wait of a rank counts. A
/// client whose address is translated on its way to the store stays unknown.
void join_waits(std::vector<RankOnHost>& ranks, const std::vector<StoreWait>& waits);

/// Whether `later`, learned after `first`, is its cause: a failure of its own, while `first` only
/// lost the connection to another rank or waited for it in vain.
[[nodiscard]] bool is_cause(const WorkerExit& later, const WorkerExit& first);

/// What the ranks say together; nothing if `first` failed for a reason of its own.
[[nodiscard]] std::optional<Finding> find_culprit(const WorkerExit& first,
                                                  const std::vector<RankOnHost>& ranks,
                                                  int world_size);

}  // namespace ddprun::round
