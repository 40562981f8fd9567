// RestartPace: the delay before a failed round is restarted. The first restart is immediate; after
// repeated failures shortly after the start the delay grows, so that a GPU or a port can become
// free and the restart budget is not used up at once. Pure.
#pragma once

#include <algorithm>
#include <string_view>

#include "base/clock.hpp"

namespace ddprun {

// A failure of a round that lived longer is not a quick failure.
inline constexpr Duration kQuickFailureMax = std::chrono::seconds(5);
// Before the restart after the second quick failure in a row; doubles with each further one.
inline constexpr Duration kRestartDelayMin = std::chrono::milliseconds(100);
inline constexpr Duration kRestartDelayMax = std::chrono::seconds(5);

class RestartPace {
 public:
  /// A round failed after `lived`; returns the delay before the next one starts.
  [[nodiscard]] Duration failed(Duration lived) {
    ended(lived);
    if (lived > kQuickFailureMax) return Duration(0);
    delay_ = first_ ? Duration(0) : std::clamp(2 * delay_, kRestartDelayMin, kRestartDelayMax);
    first_ = false;
    return delay_;
  }
  /// A round ended after `lived`, for any reason.
  void ended(Duration lived) {
    if (lived > kQuickFailureMax) *this = RestartPace();
  }

  /// Text after "restart 2 of 9" for the first of several delays; empty for the others.
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
