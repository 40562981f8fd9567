// JoinPace: nodes that join a run and leave it again and again. Each visit ends a round twice, on
// every node, and costs no restart. The first visits of an address are free; after each further one
// no round ends for a node of that address for a while, which doubles. The same holds for all
// addresses together, with a larger allowance and a shorter pause: who has many addresses has no
// more of it. Visits are forgotten with time. By address, of IPv6 by network: an agent chooses its
// id and its host name itself. Pure, single owner.
#pragma once

#include <cstddef>
#include <map>
#include <string>

#include "rendezvous/round/roster.hpp"

namespace ddprun::round {

/// Visits that nothing follows, the longest pause, and the time in which one visit is forgotten.
struct Allowance {
  int free = 0;
  Duration pause_max{};
  Duration forgotten{};
};
inline constexpr Allowance kOfAddress{3, std::chrono::minutes(10), std::chrono::minutes(10)};
inline constexpr Allowance kOfRun{8, std::chrono::minutes(1), std::chrono::minutes(1)};
/// After the next visit; doubles with each further one.
inline constexpr Duration kJoinPauseMin = std::chrono::seconds(1);
/// Who stays for so long costs the others no more than any node that is lost.
inline constexpr Duration kLongVisit = std::chrono::minutes(1);
/// Addresses that are remembered; of more, those that have been away for the longest time are not.
inline constexpr std::size_t kVisitorsMax = 1024;

/// What a node has to wait for.
struct Pace {
  std::string who{};  // an address, or a network; empty: the run as a whole
  int visits = 0;     // that are not forgotten
  TimePoint until{};  // no round ends for the node before
};

class JoinPace {
 public:
  /// A node of this address has gone after a round had taken it in at `came`. Those of the address
  /// that were in before the last one went are part of its visit, and who stayed for long makes
  /// none. Returns the pause that follows.
  Duration left(const std::string& address, TimePoint came, TimePoint now);
  /// The same of an agent; returns what is to be told of it.
  [[nodiscard]] std::string left(const Agent& agent, TimePoint now);
  /// That of the address, or that of the run if it lasts longer.
  [[nodiscard]] Pace pace_of(const std::string& address, TimePoint now) const;
  /// Whether no round ends for this agent now. An agent that was in a round stays in the next one.
  [[nodiscard]] bool holds_back(const Agent& agent, TimePoint now) const;

 private:
  struct Visitor {
    int visits = 0;
    TimePoint left_at{};  // the last of them
    TimePoint since{};    // visits are forgotten
  };
  [[nodiscard]] static Duration count(Visitor& visitor, const Allowance& allowance, TimePoint came,
                                      TimePoint now);
  [[nodiscard]] static Pace pace(const Visitor& visitor, const Allowance& allowance, TimePoint now);
  void forget_oldest();

  std::map<std::string, Visitor> visitors_;  // by network_of() their address
  Visitor all_;
};

}  // namespace ddprun::round
