// The rule that decides a restart: a failed round costs one from the run's budget, however many of
// its workers died; when nothing is left, or a restart cannot help, the run ends. Pure, no thread
// rule.
#pragma once

#include <string>

#include "base/types.hpp"

namespace ddprun {

struct RestartBudget {
  RestartCount used;
  int max = 0;  // --max-restarts
};

/// How a round failed.
enum class RoundFailure {
  kWorkerFailed,  // at least one worker ended with another code than 0, or by a signal
  kSpawnFailed,   // a worker could not be started: the next attempt would meet the same error
  kUnkillable,    // a worker of the round is still alive after SIGKILL, and holds what the next one
                  // needs
};

struct RestartDecision {
  enum class Next { kRestart, kGiveUp };
  Next next;
  RestartCount used;   // after the decision
  std::string reason;  // "restart 1 of 3"
};

[[nodiscard]] RestartDecision decide_restart(const RestartBudget& budget, RoundFailure failure);

}  // namespace ddprun
