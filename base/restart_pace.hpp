// RestartPace: how long the restart of a failed round waits. The first is immediate; workers that
// fail again and again right after their start wait longer each time, so that a GPU or a port has
// time to become free and the budget of restarts is not gone in a moment. Pure, no thread rule.
#pragma once

#include <algorithm>
#include <string_view>

#include "base/clock.hpp"

namespace ddprun {

// A round that lived longer is no quick failure.
inline constexpr Duration kQuickFailureMax = std::chrono::seconds(5);
// Before the restart after the second quick failure in a row; doubles with each further one.
inline constexpr Duration kRestartDelayMin = std::chrono::milliseconds(100);
inline constexpr Duration kRestartDelayMax = std::chrono::seconds(5);

class RestartPace {
 public:
  /// A round failed after `lived`: the wait before the next one starts.
  [[nodiscard]] Duration failed(Duration lived) {
    ended(lived);
    if (lived > kQuickFailureMax) return Duration(0);
    delay_ = first_ ? Duration(0) : std::clamp(2 * delay_, kRestartDelayMin, kRestartDelayMax);
    first_ = false;
    return delay_;
  }
  /// A round ended after `lived`, for whatever reason.
  void ended(Duration lived) {
    if (lived > kQuickFailureMax) *this = RestartPace();
  }

  /// Follows "restart 2 of 9" when a wait is the first of several; they are not told one by one.
  [[nodiscard]] static std::string_view sentence(Duration delay) {
    return delay == kRestartDelayMin ? " after 0.1 s, as two rounds in a row failed within 5 s; "
                                       "the delay doubles up to 5 s"
                                     : "";
  }

 private:
  bool first_ = true;  // no quick failure since the last round that lived long enough
  Duration delay_{0};
};

}  // namespace ddprun
