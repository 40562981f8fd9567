#include "agent/node/spare_pool.hpp"

#include <algorithm>

namespace ddprun {

bool SparePool::may_start() const {
  if (closed_ || !wanted_ || static_cast<int>(live_.size()) >= wanted_->spares) return false;
  const bool one_is_loading =
      std::any_of(live_.begin(), live_.end(), [](const auto& spare) { return !spare.second; });
  return wanted_->pace == Pace::kAtOnce || !one_is_loading;
}

std::optional<int> SparePool::start(TimePoint now) {
  if (!may_start() || now < not_before_) return std::nullopt;
  live_.emplace(++last_, false);
  return last_;
}

std::optional<TimePoint> SparePool::due() const {
  return may_start() ? std::optional(not_before_) : std::nullopt;
}

void SparePool::waits(int spare) {
  const auto found = live_.find(spare);
  if (found != live_.end()) found->second = true;
}

bool SparePool::is_waiting(int spare) const {
  const auto found = live_.find(spare);
  return found != live_.end() && found->second;
}

std::optional<int> SparePool::take() {
  const auto found =
      std::find_if(live_.begin(), live_.end(), [](const auto& spare) { return spare.second; });
  if (found == live_.end()) return std::nullopt;
  const int spare = found->first;
  live_.erase(found);
  lost_ = 0;
  return spare;
}

std::vector<int> SparePool::surplus() {
  std::vector<int> ended;
  while (wanted_ && static_cast<int>(live_.size()) > wanted_->spares) {
    const auto last = std::prev(live_.end());
    ended.push_back(last->first);
    live_.erase(last);
  }
  return ended;
}

SparePool::Ended SparePool::ended(int spare, TimePoint now) {
  const auto found = live_.find(spare);
  if (found == live_.end()) return Ended::kUnknown;
  const bool waited = found->second;
  live_.erase(found);
  if (!waited) {
    closed_ = true;
    return Ended::kBeforeItWaited;
  }
  not_before_ = now + std::min(kSpareAgainMax, kSpareAgainMin * (1 << std::min(lost_++, 10)));
  return Ended::kWhileItWaited;
}

}  // namespace ddprun
