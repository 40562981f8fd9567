// Announcer: when the wait of a run is announced to all its agents. However many agents join, that
// happens at most once per interval. Pure, single owner.
#pragma once

#include <algorithm>
#include <optional>

#include "base/clock.hpp"

namespace ddprun::round {

// Between two announcements of a wait.
inline constexpr Duration kAnnounceInterval = std::chrono::seconds(1);

class Announcer {
 public:
  /// There is news of the wait.
  void request(TimePoint now) {
    if (!due_) due_ = std::max(now, last_) + kAnnounceInterval;
  }
  void cancel() { due_.reset(); }
  /// Whether to announce now; the next announcement needs a request of its own.
  [[nodiscard]] bool take_due(TimePoint now) {
    if (!due_ || now < *due_) return false;
    due_.reset();
    last_ = now;
    return true;
  }
  [[nodiscard]] const std::optional<TimePoint>& due() const { return due_; }

 private:
  std::optional<TimePoint> due_;
  TimePoint last_{};
};

}  // namespace ddprun::round
