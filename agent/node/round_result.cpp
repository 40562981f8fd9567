#include "agent/node/round_result.hpp"

#include "agent/report/text.hpp"

namespace ddprun {

std::string RoundResult::unkillable_worker() const {
  const bool has_one = state != GroupState::kSucceeded && !unkillable.empty();
  return has_one ? who(unkillable.front().worker) : "";
}

std::string RoundResult::untold_death_line() const {
  if (state == GroupState::kSucceeded) return "";
  return failure && death_logged == Logged::kNo ? ddprun::death_line(*failure, 0) : death_line;
}

client::GroupGone gone(Round round, const RoundResult& result) {
  using protocol::Milliseconds;
  using std::chrono::duration_cast;
  if (result.state == GroupState::kSucceeded) return {round};
  return {round,
          duration_cast<Milliseconds>(result.stop_took),
          result.killed,
          result.stopped,
          result.ranks,
          result.waits,
          result.other_failure,
          result.alike,
          duration_cast<Milliseconds>(result.spared)};
}

}  // namespace ddprun
