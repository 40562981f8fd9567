#include "rendezvous/round/join_pace.hpp"

#include <arpa/inet.h>

#include <algorithm>
#include <cstring>

namespace ddprun::round {

namespace {

// 2^10 s are more than kJoinPauseMax.
constexpr int kVisitsMax = kFreeVisits + 11;
constexpr std::size_t kNetworkBytes = 8;  // of an IPv6 address; a host has all the others

[[nodiscard]] std::string visitor_of(const std::string& address) {
  in6_addr bits{};
  if (::inet_pton(AF_INET6, address.c_str(), &bits) != 1) return address;
  if (IN6_IS_ADDR_V4MAPPED(&bits) || IN6_IS_ADDR_LOOPBACK(&bits)) return address;
  std::string network(kNetworkBytes, '\0');
  std::memcpy(network.data(), &bits, kNetworkBytes);
  return network;
}

[[nodiscard]] Duration pause_after(int visits) {
  const int costly = visits - kFreeVisits;
  if (costly <= 0) return Duration(0);
  return std::min(kJoinPauseMax, kJoinPauseMin * (1 << (costly - 1)));
}

[[nodiscard]] int remembered(int visits, Duration since) {
  return std::max(
      0, visits - static_cast<int>(std::min<Duration::rep>(since / kVisitForgotten, kVisitsMax)));
}

}  // namespace

Duration JoinPace::left(const std::string& address, TimePoint now) {
  const std::string key = visitor_of(address);
  if (!visitors_.contains(key) && visitors_.size() >= kVisitorsMax) forget_oldest();
  Visitor& visitor = visitors_[key];
  if (visitor.visits == 0 || visitor.left_at < now) {
    const int before = remembered(visitor.visits, now - visitor.left_at);
    visitor = {std::min(before + 1, kVisitsMax), now};
  }
  return pause_after(visitor.visits);
}

TimePoint JoinPace::welcome_at(const std::string& address, TimePoint now) const {
  const auto found = visitors_.find(visitor_of(address));
  if (found == visitors_.end()) return now;
  return found->second.left_at + pause_after(found->second.visits);
}

int JoinPace::visits(const std::string& address, TimePoint now) const {
  const auto found = visitors_.find(visitor_of(address));
  if (found == visitors_.end()) return 0;
  return remembered(found->second.visits, now - found->second.left_at);
}

void JoinPace::forget_oldest() {
  const auto sooner = [](const auto& left, const auto& right) {
    return left.second.left_at < right.second.left_at;
  };
  visitors_.erase(std::min_element(visitors_.begin(), visitors_.end(), sooner));
}

}  // namespace ddprun::round
