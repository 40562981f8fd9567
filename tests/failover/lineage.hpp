// Lineage: what must hold in every world in which coordinators fail over (docs/FAILOVER.md): no two
// rounds follow one settled round, there are never two worlds of one run, no agent goes back, no
// fail-over costs a restart. Knows the rounds that were sent and taken on, nothing of who decides.
#pragma once

#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "rendezvous/protocol/messages.hpp"
#include "tests/sim/checker.hpp"

namespace ddprun::failover {

using sim::require;

/// "7 of c1/3.1.1".
[[nodiscard]] std::string text_of(const protocol::RoundStamp& stamp);

class Lineage {
 public:
  using Key = std::pair<int, std::string>;
  struct RoundFacts {
    protocol::RoundStamp stamp;
    protocol::RoundStamp base;  // the settled round that it follows; number 0: none
    int needs = 0;
    int size = 0;
    std::map<int, AgentId> members;  // that it was sent to, by group rank
    std::set<std::string> voters;    // of these, those with a vote
    std::set<std::string> takers;    // that have taken it on
    std::set<Key> ancestors;         // rounds that its takers were in before
    int votes = 0;                   // takers with a vote
    int working = 0;                 // members that are in it, and whose workers run
    bool is_settled = false;
    bool has_successors = false;  // its members know who follows its coordinator
  };
  /// An agent, as the world sees it.
  struct Agent {
    std::string id;
    protocol::RoundStamp stamp;
    bool works = false;
  };

  /// `failures`: of workers so far.
  void on_round_sent(const protocol::StartRound& start, const AgentId& to,
                     const protocol::RoundStamp& base, int failures);
  void on_round_taken(const AgentId& agent, const protocol::RoundStamp& before,
                      const protocol::StartRound& start);
  void on_process_gone(const AgentId& agent) { gone_.insert(agent.value()); }
  /// What has become of one agent. One that has ended does not work.
  void on_agent(const Agent& agent);

  [[nodiscard]] const RoundFacts* find(const protocol::RoundStamp& stamp) const;
  /// The newest settled one; null: none.
  [[nodiscard]] const RoundFacts* newest_settled() const;
  /// Whether this round is that one, or follows it.
  [[nodiscard]] bool descends(const protocol::RoundStamp& stamp,
                              const protocol::RoundStamp& from) const;
  /// The first of those that it follows, one after the other.
  [[nodiscard]] protocol::RoundStamp origin(const RoundFacts& round) const;
  [[nodiscard]] int rounds() const { return static_cast<int>(rounds_.size()); }
  [[nodiscard]] int restarts() const { return restarts_; }

  [[nodiscard]] static Key key_of(const protocol::RoundStamp& stamp) {
    return {stamp.number.value(), stamp.author};
  }

 private:
  void settle(RoundFacts& round);
  [[nodiscard]] bool lives(const RoundFacts& round) const;
  /// Some node can decide what follows.
  [[nodiscard]] bool can_be_followed(const RoundFacts& round) const;
  void check_world(const RoundFacts& round) const;

  std::map<Key, RoundFacts> rounds_;
  std::set<Key> worlds_;                        // rounds of which all members work
  std::unordered_map<std::string, Key> works_;  // by agent: for which round
  std::unordered_set<std::string> gone_;        // agents whose process has ended
  int restarts_ = 0;
};

}  // namespace ddprun::failover
