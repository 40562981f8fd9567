// EarlyFinish: some ranks exited with code 0 while others continue. That may be meant, or a rank
// that will be waited for without end: it is said soon, again after a minute, and then no more.
// Pure, no thread rule.
#pragma once

#include <chrono>
#include <optional>

#include "base/clock.hpp"

namespace ddprun {

// Ranks that exited with code 0 while others continue are named at these times after the first one.
inline constexpr Duration kFirstPartialNote = std::chrono::seconds(5);
inline constexpr Duration kSecondPartialNote = std::chrono::minutes(1);

class EarlyFinish {
 public:
  enum class Due { kNothing, kFirstNote, kSecondNote, kGiveUp };

  /// `timeout`: --finish-timeout; none: the others may take as long as they want.
  explicit EarlyFinish(std::optional<Duration> timeout) : timeout_(timeout) {}

  /// The number of ranks that exited with code 0 by themselves, and of those that still run.
  void update(int finished, int running, TimePoint now);
  /// When take() is to be called; none: not before the next update().
  [[nodiscard]] std::optional<TimePoint> next() const;
  /// What is due; each once.
  [[nodiscard]] Due take(TimePoint now);
  /// Since the first of them exited. Only while next() was or is set.
  [[nodiscard]] Duration lasts(TimePoint now) const { return now - *since_; }
  /// What is left of --finish-timeout.
  [[nodiscard]] std::optional<Duration> left(TimePoint now) const;

 private:
  [[nodiscard]] std::optional<TimePoint> next_note() const;

  std::optional<Duration> timeout_;
  std::optional<TimePoint> since_{};
  bool active_ = false;
  bool gave_up_ = false;
  int notes_ = 0;
};

}  // namespace ddprun
