#include "agent/node/round_result.hpp"

#include "agent/report/text.hpp"

namespace ddprun {

GroupOutcome outcome_of(const RoundResult& result) {
  GroupOutcome outcome;
  if (result.state == GroupState::kSucceeded) return outcome;
  if (!result.unkillable.empty()) outcome.unkillable = who(result.unkillable.front().worker);
  const bool unlogged = result.death_logged == RoundResult::Logged::kNo;
  outcome.death_line = result.death_line;
  if (result.failure && unlogged) outcome.death_line = death_line(*result.failure, 0);
  outcome.stop_took = std::chrono::duration_cast<std::chrono::milliseconds>(result.stop_took);
  outcome.spared = std::chrono::duration_cast<std::chrono::milliseconds>(result.spared);
  outcome.killed = result.killed;
  outcome.stopped = result.stopped;
  outcome.ranks = result.ranks;
  outcome.waits = result.waits;
  outcome.other_failure = result.other_failure;
  outcome.alike = result.alike;
  return outcome;
}

}  // namespace ddprun
