#include "agent/stop_countdown.hpp"

#include <spdlog/logger.h>

#include "agent/core/limits.hpp"
#include "agent/core/lines.hpp"

namespace ddprun {

void StopCountdown::begin(TimePoint deadline) {
  deadline_ = deadline;
  tick_.expires_after(kCountdownInterval);
  tick_.async_wait([this](const boost::system::error_code& why) {
    if (!why) tick();
  });
}

void StopCountdown::tick() {
  const auto left = std::chrono::round<std::chrono::seconds>(deadline_ - Clock::now());
  const std::vector<Rank> running = running_();
  if (left <= Duration::zero() || running.empty()) return;
  logger_.info(countdown_line(left, running));
  begin(deadline_);
}

}  // namespace ddprun
