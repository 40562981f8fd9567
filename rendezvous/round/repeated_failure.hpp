// RepeatedFailure: recognizes that round after round fails in the same way soon after its start:
// the same exit, and the same telling line but for its numbers. A restart cannot mend what fails
// so: the report says it, and with --min-uptime the second such failure ends the run. Pure.
#pragma once

#include <string>

#include "base/clock.hpp"
#include "base/worker_exit.hpp"

namespace ddprun::round {

// What is soon without --min-uptime.
inline constexpr Duration kEarlyFailureMax = std::chrono::seconds(60);
// Of that line, in the sentence.
inline constexpr std::size_t kRepeatedLineBytesMax = 160;

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
};

}  // namespace ddprun::round
