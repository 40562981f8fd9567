#include "agent/workers/stop_countdown.hpp"

#include <spdlog/logger.h>

#include "agent/report/lines.hpp"

namespace ddprun {

void StopCountdown::begin(TimePoint deadline, int all) {
  deadline_ = deadline;
  arm();
  if (!waits_) return;
  waits_->begin(WaitLine::Of::kStop, [this, all] {
    return StopWait{static_cast<int>(running_().size()), all, deadline_};
  });
}

void StopCountdown::end() {
  tick_.cancel();
  if (waits_) waits_->end(WaitLine::Of::kStop);
}

void StopCountdown::arm() {
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
  arm();
}

}  // namespace ddprun
