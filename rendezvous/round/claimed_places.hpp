// ClaimedPlaces: of each round that agents claim after a restart of the coordinator, which places
// are taken. Pure, owned by the phase that waits for them; O(log n) of n claimed rounds.
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>

#include "rendezvous/round/roster.hpp"

namespace ddprun::round {

class ClaimedPlaces {
 public:
  /// Takes the place that this agent claims, if it is also its group rank; returns whether it was
  /// free.
  bool take(Agent& agent, const protocol::Claim& claim);
  /// Agents that claim a round, also those that have gone, say what the run had used of its budget.
  struct Restarts {
    RestartCount used{0};
    bool is_told = false;  // a restart answers the failure of that round
  };
  [[nodiscard]] Restarts restarts(const protocol::RoundStamp& stamp) const;
  void forget(const Agent& agent);
  /// The process of this agent, and its ranks, or these alone.
  void ended(const Agent& agent);

  /// The round that most agents claim; of several, the newest. So one agent that claims a round
  /// that nothing proves does not replace that of all others. Number 0: none is claimed.
  [[nodiscard]] const protocol::RoundStamp& stamp() const { return most().stamp; }
  /// The size of that round, as claimed; 0: none is.
  [[nodiscard]] int size() const { return most().size; }
  /// Its members that are here, by group rank.
  [[nodiscard]] const std::map<int, Agent*>& members() const { return most().members; }
  [[nodiscard]] int here() const { return static_cast<int>(members().size()); }
  [[nodiscard]] bool complete() const { return size() > 0 && here() == size(); }
  /// Whether more than half of its members are here.
  [[nodiscard]] bool has_majority() const { return 2 * here() > size(); }
  /// Whether ranks of a member have ended otherwise than with success.
  [[nodiscard]] bool is_broken() const { return most().is_broken; }

 private:
  using Key = std::pair<int, std::string>;
  struct Claimed {
    protocol::RoundStamp stamp{};
    int size = 0;
    std::map<int, Agent*> members{};
    Restarts restarts{};
    bool is_broken = false;
    [[nodiscard]] int here() const { return static_cast<int>(members.size()); }
  };
  [[nodiscard]] static Key key_of(const protocol::RoundStamp& stamp);
  [[nodiscard]] const Claimed& most() const;
  [[nodiscard]] Claimed* of(const Agent& agent);
  void forget_empty();

  std::map<Key, Claimed> rounds_;             // each with a member, or one alone
  std::set<std::pair<int, Key>> by_members_;  // how many each has
};

}  // namespace ddprun::round
