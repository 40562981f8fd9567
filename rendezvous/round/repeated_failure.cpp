#include "rendezvous/round/repeated_failure.hpp"

#include <algorithm>

#include "base/duration_text.hpp"

namespace ddprun::round {

namespace {

/// An exit code alone tells nothing, if what the worker said does not pass through ddprun.
bool is_unknown(const WorkerExit& exit) {
  return exit.lines.empty() && exit.evidence.stderr_unseen && !exit.status.by_signal();
}

}  // namespace

void RepeatedFailure::failed(const WorkerExit& exit, Round round, Duration lived, Duration soon) {
  const std::string line = telling_line(exit);
  const bool both_silent = exit.status == status_ && line.empty() && line_.empty();
  const bool same =
      !is_unknown(exit) && (both_silent || is_alike(exit.status, line, status_, line_));
  if (lived > soon || !same || exit.given_up.has_value() != given_up_) *this = RepeatedFailure();
  if (lived > soon) return;
  if (count_ == 0) {
    first_ = round;
    rank_ = exit.worker.rank;
    line_ = line;
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

}  // namespace ddprun::round
