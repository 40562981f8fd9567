#include "rendezvous/round/restarts.hpp"

#include <algorithm>

#include "rendezvous/round/reasons.hpp"

namespace ddprun::round {

using namespace protocol;

namespace {

/// Rounds whose failures other coordinators have answered: the last one, and those of other runs.
constexpr std::size_t kToldMax = 8;

[[nodiscard]] Duration early(const Terms& terms) {
  return terms.min_uptime ? Duration(*terms.min_uptime) : kEarlyFailureMax;
}

}  // namespace

void Restarts::limit(int most) {
  used_ = std::min(used_, RestartCount(most));
}

void Restarts::forget_told(RestartCount used) {
  used_ = used;
  told_.clear();
}

std::optional<NoRestart> Restarts::answer(const Failure& failure, Duration lived,
                                          const Terms& terms) {
  const WorkerExit& exit = failure.exit;
  answered_ = failure;
  repeated_.failed(exit, failure.round, lived, early(terms));
  const bool unwanted = exit.given_up && !exit.given_up->no_restart.empty();
  if (terms.max_restarts == 0) return NoRestart{};
  if (used_.value() >= terms.max_restarts) return NoRestart{reasons::no_restart_left(terms)};
  if (unwanted) return NoRestart{exit.given_up->no_restart};
  if (terms.min_uptime && repeated_.count() >= 2) {
    return NoRestart{reasons::restarts_unused(used_, terms), reasons::no_retry(terms)};
  }
  used_ = RestartCount(used_.value() + 1);
  // A round whose ranks have finished a step has come further than what fails right away.
  pace(exit.evidence.stepped ? Duration::max() : lived);
  return std::nullopt;
}

bool Restarts::has_answered(const RoundStamp& stamp) const {
  const bool here = answered_ && answered_->round == stamp.number;
  return here || std::find(told_.begin(), told_.end(), stamp) != told_.end();
}

bool Restarts::may_be_last(const Terms& terms) const {
  const bool none_left = used_.value() >= terms.max_restarts;
  return none_left || (terms.min_uptime && repeated_.count() > 0);
}

Duration Restarts::pace(Duration lived) {
  delay_ = pace_.failed(lived);
  return delay_;
}

void Restarts::round_ended(Duration lived, const Terms& terms) {
  pace_.ended(lived);
  repeated_.ended(lived, early(terms));
}

void Restarts::believe(const ClaimedPlaces::Restarts& claimed, const RoundStamp& stamp, int most) {
  used_ = std::max(used_, RestartCount(std::min(claimed.used.value(), most)));
  // A node of an abandoned run may claim a round with the same number.
  if (!claimed.is_told || std::find(told_.begin(), told_.end(), stamp) != told_.end()) return;
  if (told_.size() == kToldMax) told_.erase(told_.begin());
  told_.push_back(stamp);
}

}  // namespace ddprun::round
