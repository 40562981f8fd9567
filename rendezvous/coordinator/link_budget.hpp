// LinkBudget: how much one agent may say. An agent sends a heartbeat a second, and now and then a
// report; one that sends without end is read more slowly, and so costs the others no time. Nothing
// is lost: what it sends waits in its kernel. Pure.
#pragma once

#include <algorithm>
#include <cstddef>

#include "base/clock.hpp"

namespace ddprun::coordinator {

/// Bytes that are read from one agent per second; the report of a failure has a few thousand.
inline constexpr std::size_t kLinkBytesPerSecond = 1024 * 1024;
/// What an agent may say at once, as the time in which it might have.
inline constexpr Duration kLinkCredit = std::chrono::milliseconds(250);

class LinkBudget {
 public:
  void spend(std::size_t frames, std::size_t bytes, std::size_t frames_per_second, TimePoint now) {
    const std::chrono::duration<double> cost(
        std::max(static_cast<double>(frames) / static_cast<double>(frames_per_second),
                 static_cast<double>(bytes) / static_cast<double>(kLinkBytesPerSecond)));
    read_at_ = std::max(read_at_, now - kLinkCredit) + std::chrono::duration_cast<Duration>(cost);
  }
  /// When more is read.
  [[nodiscard]] TimePoint read_at() const { return read_at_; }

 private:
  TimePoint read_at_{};
};

}  // namespace ddprun::coordinator
