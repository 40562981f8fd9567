// Claims: how many agents of a run are in which round, counted as they change. A coordinator that
// waits for a majority asks at every message, of thousands of agents: nothing here is linear in
// these. Pure, owned by Roster.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "base/types.hpp"
#include "rendezvous/protocol/messages.hpp"

namespace ddprun::round {

struct Agent;

/// A round, and its members that are here, by what they claim.
struct ClaimedRound {
  protocol::RoundStamp stamp;
  int size = 0;
  int here = 0;
  int votes = 0;             // of nodes that were in the round before it
  int told = 0;              // of nodes that know it to be settled
  int at_endpoint = 0;       // of nodes that find its author's endpoint where it was
  int cut_short = 0;         // of nodes that know that ranks of it were stopped
  int failures_to_come = 0;  // of nodes whose failure counts, and whose report of it follows
  protocol::Succession succession{};

  /// What listens at the run's endpoint has taken its author's port, as far as any node can tell.
  [[nodiscard]] bool is_at_endpoint() const { return at_endpoint == here; }
  [[nodiscard]] bool settled() const { return told > 0 || (here > 0 && succession.needs == 0); }
  /// Whether no other coordinator can decide what follows it. `ended`: members that have ended for
  /// sure, of which only its author's may be counted.
  [[nodiscard]] bool has_majority(int ended) const;
};

/// Ranks fail when the node of the coordinator is lost, above all if it served their store: such a
/// failure, which follows the coordinator's last word, costs nothing.
[[nodiscard]] bool counts_failure(const Agent& agent);

class Claims {
 public:
  using Key = std::pair<int, std::string>;  // newest first
  /// As what an agent is counted.
  struct Counted {
    bool is_here = false;
    bool has_vote = false;
    bool is_told = false;
    bool is_cut_short = false;
    bool awaits_failure = false;
    bool is_at_endpoint = false;
    int heard_of = 0;
    Key key{};
    friend bool operator==(const Counted&, const Counted&) = default;
  };

  /// The agent is new, or has changed.
  void count(Agent& agent);
  void forget(Agent& agent);
  /// Only those that some agent claims.
  [[nodiscard]] const std::map<Key, ClaimedRound>& rounds() const { return rounds_; }
  /// Null: no agent claims it.
  [[nodiscard]] const ClaimedRound* find(const protocol::RoundStamp& stamp) const;
  /// The newest round that an agent has heard of, of those at most `jump_max` above the lower
  /// median of all `agents`; 0: they have heard of none.
  [[nodiscard]] Round highest_near_half(int agents, int jump_max) const;

 private:
  void add(const Agent& agent, const Counted& counted, int change);

  std::map<Key, ClaimedRound> rounds_;
  std::map<int, int> heard_of_;  // agents by the newest round that they have heard of
  int heard_ = 0;                // all of them
};

/// ClaimedPlaces: of each round that agents claim after a restart of the coordinator, which places
/// are taken. Pure, owned by the phase that waits for them; O(log n) of n claimed rounds.
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
