#include "agent/core/restart.hpp"

namespace ddprun {

RestartDecision decide_restart(const RestartBudget& budget, RoundFailure failure) {
  using Next = RestartDecision::Next;
  const int used = budget.used.value();
  const std::string max = std::to_string(budget.max);
  switch (failure) {
    case RoundFailure::kSpawnFailed:
      return {Next::kGiveUp, budget.used, "not restarted: a worker cannot be started"};
    case RoundFailure::kUnkillable:
      return {Next::kGiveUp, budget.used,
              "not restarted: a worker of the last round is still alive"};
    case RoundFailure::kWorkerFailed:
      break;
  }
  if (budget.max == 0) return {Next::kGiveUp, budget.used, "not restarted: --max-restarts is 0"};
  if (used >= budget.max) {
    return {Next::kGiveUp, budget.used, "not restarted: all " + max + " restarts are used"};
  }
  const RestartCount after(used + 1);
  return {Next::kRestart, after, "restart " + std::to_string(after.value()) + " of " + max};
}

}  // namespace ddprun
