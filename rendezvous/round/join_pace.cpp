#include "rendezvous/round/join_pace.hpp"

#include <algorithm>

#include "base/address.hpp"
#include "rendezvous/round/reasons.hpp"

namespace ddprun::round {

namespace {

// 2^10 s are more than any longest pause.
constexpr int kCostlyMax = 11;
static_assert(kJoinPauseMin * (1 << (kCostlyMax - 1)) > kOfAddress.pause_max);

[[nodiscard]] Duration pause_after(int visits, const Allowance& allowance) {
  const int costly = visits - allowance.free;
  if (costly <= 0) return Duration(0);
  return std::min(allowance.pause_max, kJoinPauseMin * (1 << (costly - 1)));
}

[[nodiscard]] int forgotten(int visits, TimePoint since, const Allowance& allowance,
                            TimePoint now) {
  const auto times = (now - since) / allowance.forgotten;
  return static_cast<int>(std::min<Duration::rep>(times, visits));
}

}  // namespace

Duration JoinPace::count(Visitor& visitor, const Allowance& allowance, TimePoint came,
                         TimePoint now) {
  const bool same = visitor.visits > 0 && came <= visitor.left_at;
  if (same) return pause_after(visitor.visits, allowance);
  const int old = forgotten(visitor.visits, visitor.since, allowance, now);
  visitor.visits -= old;
  visitor.since = visitor.visits == 0 ? now : visitor.since + old * allowance.forgotten;
  visitor.visits = std::min(visitor.visits + 1, allowance.free + kCostlyMax);
  visitor.left_at = now;
  return pause_after(visitor.visits, allowance);
}

Duration JoinPace::left(const std::string& address, TimePoint came, TimePoint now) {
  if (now - came >= kLongVisit) return Duration(0);
  const std::string network = network_of(address);
  if (!visitors_.contains(network) && visitors_.size() >= kVisitorsMax) forget_oldest();
  // Of several addresses only what was lost at the same moment was one round.
  return std::max(count(visitors_[network], kOfAddress, came, now), count(all_, kOfRun, now, now));
}

std::string JoinPace::left(const Agent& agent, TimePoint now) {
  if (!agent.taken_in) return "";
  const Duration pause = left(agent.peer.address, agent.taken_in_at, now);
  if (pause.count() == 0) return "";
  const Pace pace = pace_of(agent.peer.address, now);
  return reasons::comes_and_goes(pace.who, pace.visits, pause);
}

bool JoinPace::holds_back(const Agent& agent, TimePoint now) const {
  return agent.came_later && !agent.taken_in && pace_of(agent.peer.address, now).until > now;
}

Pace JoinPace::pace(const Visitor& visitor, const Allowance& allowance, TimePoint now) {
  if (visitor.visits == 0) return {};
  const int visits = visitor.visits - forgotten(visitor.visits, visitor.since, allowance, now);
  return {"", visits, visitor.left_at + pause_after(visitor.visits, allowance)};
}

Pace JoinPace::pace_of(const std::string& address, TimePoint now) const {
  const std::string network = network_of(address);
  const auto found = visitors_.find(network);
  Pace own = found == visitors_.end() ? Pace() : pace(found->second, kOfAddress, now);
  own.who = network;
  const Pace all = pace(all_, kOfRun, now);
  return all.until > now && all.until > own.until ? all : own;
}

void JoinPace::forget_oldest() {
  const auto sooner = [](const auto& left, const auto& right) {
    return left.second.left_at < right.second.left_at;
  };
  visitors_.erase(std::min_element(visitors_.begin(), visitors_.end(), sooner));
}

}  // namespace ddprun::round
