// LogQuota: bounds the log lines that peers can cause by connecting, joining, leaving and being
// refused again and again. Pure.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <map>
#include <string>
#include <utility>

#include "base/clock.hpp"

namespace ddprun {

class LogQuota {
 public:
  /// `burst` lines at once, then one per `interval`.
  LogQuota(int burst, Duration interval) : burst_(burst * interval), interval_(interval) {}

  /// Whether one more line may be logged; otherwise it counts as omitted.
  [[nodiscard]] bool try_take(TimePoint now) {
    const TimePoint next = std::max(next_, now) + interval_;
    if (next - now > burst_) {
      ++omitted_;
      return false;
    }
    next_ = next;
    return true;
  }
  /// Lines omitted since the last call.
  [[nodiscard]] std::size_t take_omitted() { return std::exchange(omitted_, 0); }

 private:
  Duration burst_;
  Duration interval_;
  TimePoint next_{};  // when all lines so far would have been due at the steady rate
  std::size_t omitted_ = 0;
};

/// One quota for each kind of line, so that many of one kind leave the others theirs.
class LogQuotas {
 public:
  /// Kinds beyond `kinds_max` share one quota.
  LogQuotas(int burst, Duration interval, std::size_t kinds_max)
      : burst_(burst), interval_(interval), kinds_max_(kinds_max) {}

  [[nodiscard]] LogQuota& of(const std::string& kind) {
    const bool is_shared = quotas_.size() >= kinds_max_ && !quotas_.contains(kind);
    return quotas_.try_emplace(is_shared ? std::string() : kind, burst_, interval_).first->second;
  }

 private:
  int burst_;
  Duration interval_;
  std::size_t kinds_max_;
  std::map<std::string, LogQuota> quotas_;
};

}  // namespace ddprun
