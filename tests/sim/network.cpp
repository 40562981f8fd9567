#include "tests/sim/network.hpp"

#include <algorithm>
#include <stdexcept>

namespace ddprun::sim {
namespace {
constexpr int kSameInstantMax = 2'000'000;
}  // namespace

void Timeline::at(TimePoint when, std::function<void()> what) {
  queue_.push({std::max(when, now_), order_++, std::move(what)});
}

bool Timeline::run_one(TimePoint limit) {
  if (queue_.empty() || queue_.top().when > limit) {
    now_ = std::max(now_, limit);
    return false;
  }
  // The queue hands out const entries; the function is moved out right before the entry goes.
  Entry entry = std::move(const_cast<Entry&>(queue_.top()));
  queue_.pop();
  // A timer is armed that is due for ever, or two sides answer each other without end.
  same_instant_ = entry.when == now_ ? same_instant_ + 1 : 0;
  if (same_instant_ > kSameInstantMax) throw std::runtime_error("time stands still");
  now_ = entry.when;
  entry.what();
  return true;
}

TimePoint DriftingClock::local(TimePoint global) const {
  const auto ticks = static_cast<double>(global.time_since_epoch().count()) * rate;
  return TimePoint(Duration(static_cast<Duration::rep>(ticks)) + offset);
}

TimePoint DriftingClock::global(TimePoint when) const {
  const auto ticks = static_cast<double>((when.time_since_epoch() - offset).count()) / rate;
  TimePoint global{Duration(static_cast<Duration::rep>(ticks))};
  while (local(global) < when) global += std::chrono::microseconds(1);
  return global;
}

}  // namespace ddprun::sim
