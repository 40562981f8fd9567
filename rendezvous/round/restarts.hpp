// Restarts: the budget of restarts of one run, what it was used for, and whether the next failure
// gets one. The first failure of a round takes one; those that follow from it belong to a round
// that has ended. Pure, owned by Run.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/restart_pace.hpp"
#include "base/worker_exit.hpp"
#include "rendezvous/round/claims.hpp"
#include "rendezvous/round/live_round.hpp"

namespace ddprun::round {

// What is soon without --min-uptime.
inline constexpr Duration kEarlyFailureMax = std::chrono::seconds(60);
// Of that line, in the sentence.
inline constexpr std::size_t kRepeatedLineBytesMax = 160;

/// RepeatedFailure: recognizes that round after round fails in the same way soon after its start:
/// the same exit, and the same telling line but for its numbers. A restart cannot mend what fails
/// so: the report says it, and with --min-uptime the second such failure ends the run.
class RepeatedFailure {
 public:
  /// A round failed with `exit` after `lived`; a failure after more than `soon` is no early one.
  void failed(const WorkerExit& exit, Round round, Duration lived, Duration soon);
  /// A round ended after `lived`, for any reason.
  void ended(Duration lived, Duration soon) {
    if (lived > soon) *this = RepeatedFailure();
  }
  /// Early failures in a row that were alike.
  [[nodiscard]] int count() const { return count_; }
  /// "rounds 1 to 4 ended alike within 2.1 s of their start: rank 0, exit code 1, "KeyError: 'x'"";
  /// empty for a single one.
  [[nodiscard]] std::string sentence() const;

 private:
  [[nodiscard]] std::string what() const;

  int count_ = 0;
  Round first_{0};
  Round last_{0};
  Duration longest_{0};
  ExitStatus status_ = ExitStatus::exited(0);
  Rank rank_{0};
  bool same_rank_ = true;
  bool given_up_ = false;
  std::string line_;  // the telling one of the first of them
  std::string likeness_;
};

/// Why a failure ends the run, for people.
struct NoRestart {
  std::string why{};
  std::string no_retry{};  // what failed so again would fail so once more; empty: it may not
};

class Restarts {
 public:
  explicit Restarts(RestartCount used = RestartCount(0)) : used_(used) {}

  [[nodiscard]] RestartCount used() const { return used_; }
  /// The agents that are here allow so many.
  void limit(int most);
  /// All that claimed to have used more have gone.
  void forget_told(RestartCount used);

  // Failures.
  /// A restart answers this one, unless it says why not.
  [[nodiscard]] std::optional<NoRestart> answer(const Failure& failure, Duration lived,
                                                const protocol::Terms& terms);
  /// The failure that the last restart answers, until all workers of the new round run: a stop of
  /// the run in between ends it with this failure.
  [[nodiscard]] const std::optional<Failure>& answered() const { return answered_; }
  void forget_answered() { answered_.reset(); }
  /// Whether that failure was before the cause of a leave from this round: workers of the failed
  /// round may still be ending, on this node or on others, whose next ones have yet to start.
  [[nodiscard]] bool explains(Round left, bool others_start) const {
    return answered_ && (left == answered_->round || others_start);
  }
  /// All links can break before the next round starts: then the round that failed comes back.
  [[nodiscard]] bool has_answered(const protocol::RoundStamp& stamp) const;
  /// Whether a failure of the round that starts may end the run. With --min-uptime that depends on
  /// what it is.
  [[nodiscard]] bool may_be_last(const protocol::Terms& terms) const;
  /// Rounds that failed alike; empty: a single one.
  [[nodiscard]] std::string repeated_text() const { return repeated_.sentence(); }

  // The pace: later and later, if rounds fail right away.
  /// A round has failed after it lived for so long.
  void pace(Duration lived) { delay_ = pace_.failed(lived); }
  /// That of the last restart.
  [[nodiscard]] Duration delay() const { return delay_; }
  /// When the round after it may start at the soonest.
  [[nodiscard]] std::optional<TimePoint> restart_at(TimePoint now) const;
  /// A round has ended, for any reason.
  void round_ended(Duration lived, const protocol::Terms& terms);

  /// An agent of the run says what it had used when it told this round.
  void believe(const ClaimedPlaces::Restarts& claimed, const protocol::RoundStamp& stamp, int most);

 private:
  RestartCount used_;
  RestartPace pace_;
  RepeatedFailure repeated_;
  Duration delay_{0};
  std::optional<Failure> answered_;
  // Whose failure a restart of the coordinator before this one answers.
  std::vector<protocol::RoundStamp> told_;
};

}  // namespace ddprun::round
