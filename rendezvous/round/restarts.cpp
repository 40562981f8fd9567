#include "rendezvous/round/restarts.hpp"

#include <algorithm>

#include "base/format.hpp"
#include "rendezvous/round/reasons.hpp"

namespace ddprun::round {

using namespace protocol;

namespace {

/// Rounds whose failures other coordinators have answered: the last one, and those of other runs.
constexpr std::size_t kToldMax = 8;

[[nodiscard]] Duration early(const Terms& terms) {
  return terms.min_uptime ? Duration(*terms.min_uptime) : kEarlyFailureMax;
}

/// An exit code alone tells nothing, if what the worker said does not pass through ddprun.
bool is_unknown(const WorkerExit& exit) {
  return exit.lines.empty() && exit.evidence.stderr_unseen && !exit.status.by_signal();
}

}  // namespace

void RepeatedFailure::failed(const WorkerExit& exit, Round round, Duration lived, Duration soon) {
  const std::string likeness = likeness_of(exit);
  const bool both_silent = exit.status == status_ && likeness.empty() && likeness_.empty();
  const bool same =
      !is_unknown(exit) && (both_silent || is_alike(exit.status, likeness, status_, likeness_));
  if (lived > soon || !same || exit.given_up.has_value() != given_up_) *this = RepeatedFailure();
  if (lived > soon) return;
  if (count_ == 0) {
    first_ = round;
    rank_ = exit.worker.rank;
    line_ = telling_line(exit);
    likeness_ = likeness;
  }
  status_ = exit.status;
  given_up_ = exit.given_up.has_value();
  longest_ = std::max(longest_, lived);
  last_ = round;
  same_rank_ = same_rank_ && exit.worker.rank == rank_;
  ++count_;
}

// No rank ended when all were given up, and none is to blame.
std::string RepeatedFailure::what() const {
  if (given_up_) return line_;
  return (same_rank_ ? "rank " + std::to_string(rank_.value()) + ", " : "") + status_.text() +
         (line_.empty() ? "" : ", \"" + line_.substr(0, kRepeatedLineBytesMax) + "\"");
}

std::string RepeatedFailure::sentence() const {
  if (count_ < 2) return {};
  const bool gaps = last_.value() - first_.value() + 1 != count_;  // rounds that ended otherwise
  return (gaps ? std::to_string(count_) + " of the rounds " : "rounds ") +
         std::to_string(first_.value()) + (count_ == 2 && !gaps ? " and " : " to ") +
         std::to_string(last_.value()) + " ended alike within " +
         duration_text(std::max<Duration>(longest_, std::chrono::milliseconds(1))) +
         " of their start: " + what();
}

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

std::optional<TimePoint> Restarts::restart_at(TimePoint now) const {
  return delay_.count() > 0 ? std::optional(now + delay_) : std::nullopt;
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
