// SignalMerge: which deliveries are one signal. A scheduler sends a signal to every node, and nodes
// pass theirs on to the others: within kSignalMergeWindow the same signal from another origin is
// the one that was taken already; from the same origin it is the next one. Pure.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <deque>
#include <set>

#include "base/clock.hpp"

namespace ddprun {

inline constexpr Duration kSignalMergeWindow = std::chrono::seconds(2);
// Signals remembered at a time; a delivery of an older one counts as new.
inline constexpr std::size_t kSignalsRemembered = 32;

template <class Origin>
class SignalMerge {
 public:
  [[nodiscard]] bool is_new(int signal, const Origin& origin, TimePoint now) {
    while (!taken_.empty() && now - taken_.front().at >= kSignalMergeWindow) taken_.pop_front();
    const auto same = std::find_if(taken_.begin(), taken_.end(), [&](const Taken& one) {
      return one.signal == signal && one.origins.count(origin) == 0;
    });
    if (same != taken_.end()) {
      same->origins.insert(origin);
      return false;
    }
    if (taken_.size() >= kSignalsRemembered) taken_.pop_front();
    taken_.push_back({signal, now, {origin}});
    return true;
  }

 private:
  struct Taken {
    int signal = 0;
    TimePoint at{};
    std::set<Origin> origins;
  };
  std::deque<Taken> taken_;  // oldest first
};

}  // namespace ddprun
