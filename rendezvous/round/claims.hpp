// Claims: how many agents of a run are in which round, counted as they change. A coordinator that
// waits for a majority asks at every message, of thousands of agents: nothing here is linear in
// these. Pure, owned by Roster.
#pragma once

#include <map>
#include <optional>
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

}  // namespace ddprun::round
