// Limits on what peers can cause. LogQuota bounds the log lines of connecting, joining, leaving and
// being refused again and again; Budget, the bytes that a server holds. Pure. Thread rule: one
// thread.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <map>
#include <string>
#include <utility>

#include "base/assert.hpp"
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

/// The bytes that a server may hold, charged where they are allocated.
class Budget {
 public:
  explicit Budget(std::size_t bytes_max) : max_(bytes_max) {}
  Budget(const Budget&) = delete;
  Budget& operator=(const Budget&) = delete;

  [[nodiscard]] bool allows(std::size_t bytes) const {
    return bytes <= max_ && used_ <= max_ - bytes;
  }
  [[nodiscard]] bool try_take(std::size_t bytes) {
    if (!allows(bytes)) return false;
    used_ += bytes;
    return true;
  }
  /// For small fixed amounts that must not fail; may exceed the maximum slightly.
  void take(std::size_t bytes) { used_ += bytes; }
  void give_back(std::size_t bytes) {
    DDPRUN_ASSERT(bytes <= used_);
    used_ -= bytes;
  }
  [[nodiscard]] std::size_t used() const { return used_; }

 private:
  std::size_t max_;
  std::size_t used_ = 0;
};

}  // namespace ddprun
