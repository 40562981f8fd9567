// JoinPace: nodes that join a run and leave it again and again. Each visit ends a round twice, on
// every node, and costs no restart. The first visits of an address are free; after each further one
// no round ends for a node of that address for a while, which doubles. Visits are forgotten with
// time. By address: an agent chooses its id and its host name itself. Pure, single owner.
#pragma once

#include <cstddef>
#include <map>
#include <string>

#include "base/clock.hpp"

namespace ddprun::round {

/// Visits of one address, within kVisitForgotten, that nothing follows.
inline constexpr int kFreeVisits = 3;
/// After the next visit; doubles with each further one.
inline constexpr Duration kJoinPauseMin = std::chrono::seconds(1);
inline constexpr Duration kJoinPauseMax = std::chrono::minutes(10);
/// One visit of an address is forgotten in this time.
inline constexpr Duration kVisitForgotten = std::chrono::minutes(10);
/// Who stays for so long costs the others no more than any node that is lost.
inline constexpr Duration kLongVisit = std::chrono::minutes(1);
/// Addresses that are remembered; of more, those that have been away for the longest time are not.
inline constexpr std::size_t kVisitorsMax = 1024;

class JoinPace {
 public:
  /// A node of this address has gone after a round had taken it in at `came`. Those that were in
  /// before the last one went are part of its visit, and who stayed for long makes none. Returns
  /// the pause that follows.
  Duration left(const std::string& address, TimePoint came, TimePoint now);
  /// When a round may end for a node of this address.
  [[nodiscard]] TimePoint welcome_at(const std::string& address, TimePoint now) const;
  /// Visits of this address that are not forgotten.
  [[nodiscard]] int visits(const std::string& address, TimePoint now) const;

 private:
  struct Visitor {
    int visits = 0;
    TimePoint left_at{};  // the last of them
    TimePoint since{};    // visits are forgotten
  };
  [[nodiscard]] static int forgotten(const Visitor& visitor, TimePoint now);
  void forget_oldest();

  std::map<std::string, Visitor> visitors_;  // by address
};

}  // namespace ddprun::round
