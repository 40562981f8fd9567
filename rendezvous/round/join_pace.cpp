#include "rendezvous/round/join_pace.hpp"

#include <algorithm>

namespace ddprun::round {

namespace {

// 2^10 s are more than kJoinPauseMax.
constexpr int kVisitsMax = kFreeVisits + 11;

[[nodiscard]] Duration pause_after(int visits) {
  const int costly = visits - kFreeVisits;
  if (costly <= 0) return Duration(0);
  return std::min(kJoinPauseMax, kJoinPauseMin * (1 << (costly - 1)));
}

}  // namespace

int JoinPace::forgotten(const Visitor& visitor, TimePoint now) {
  const auto times = (now - visitor.since) / kVisitForgotten;
  return static_cast<int>(std::min<Duration::rep>(times, visitor.visits));
}

Duration JoinPace::left(const std::string& address, TimePoint came, TimePoint now) {
  if (now - came >= kLongVisit) return Duration(0);
  if (!visitors_.contains(address) && visitors_.size() >= kVisitorsMax) forget_oldest();
  Visitor& visitor = visitors_[address];
  const bool same = visitor.visits > 0 && came <= visitor.left_at;
  if (same) return pause_after(visitor.visits);
  const int old = forgotten(visitor, now);
  visitor.visits -= old;
  visitor.since = visitor.visits == 0 ? now : visitor.since + old * kVisitForgotten;
  visitor.visits = std::min(visitor.visits + 1, kVisitsMax);
  visitor.left_at = now;
  return pause_after(visitor.visits);
}

TimePoint JoinPace::welcome_at(const std::string& address, TimePoint now) const {
  const auto found = visitors_.find(address);
  if (found == visitors_.end()) return now;
  return found->second.left_at + pause_after(found->second.visits);
}

int JoinPace::visits(const std::string& address, TimePoint now) const {
  const auto found = visitors_.find(address);
  if (found == visitors_.end()) return 0;
  return found->second.visits - forgotten(found->second, now);
}

void JoinPace::forget_oldest() {
  const auto sooner = [](const auto& left, const auto& right) {
    return left.second.left_at < right.second.left_at;
  };
  visitors_.erase(std::min_element(visitors_.begin(), visitors_.end(), sooner));
}

}  // namespace ddprun::round
