// The agents that are connected to a run: found by id, link and node rank, ordered by how long they
// have been silent. Owns them; pointers stay valid until remove(). Pure, single owner, every
// operation O(1) on average.
#pragma once

#include <list>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "rendezvous/round/claims.hpp"
#include "rendezvous/round/event.hpp"
#include "rendezvous/round/ranks.hpp"

namespace ddprun::round {

struct Agent {
  protocol::Hello hello;
  LinkId link;
  Peer peer;
  std::uint64_t arrival = 0;
  TimePoint heard;            // or excused
  TimePoint spoke;            // its last message was read
  TimePoint greeted_at;       // its last hello
  protocol::RoundStamp last;  // the last round it was given or claims; number 0: none
  int group_rank = -1;        // in `last`
  Placement placement;        // in `last`, when this coordinator decided it
  protocol::NodeState state = protocol::NodeState::kIdle;  // of its workers in `last`
  Round runs{0};          // the round whose workers it has, as far as is known
  Round since{0};         // the first that this coordinator gave it; 0: none
  Round left{0};          // no worker of it or of one before is there any more, as the node said
  bool answered = false;  // has taken on `last`
  int question = 0;       // that it has not answered; 0: none
  protocol::Succession succession{};  // of `last`, as it was told or claims
  bool settled = false;               // as it claims
  bool cut_short = false;             // the same
  bool failed_heard = false;          // it claims a failure since which the coordinator had spoken
  bool greeted = false;               // it was told what it waits for
  bool came_later = false;            // the run had a round already
  bool taken_in = false;              // the same, and a round has taken it in
  TimePoint taken_in_at{};            // the first of them
  std::uint16_t store_port =
      0;                 // its listener for the next round; 0: spent, the next is on its way
  TimePoint running_at;  // when its workers were reported running in `last`
  std::optional<WorkerExit> failure;      // its first failure in `last`
  std::optional<protocol::Leave> leave;   // it is leaving, and waits for the report of the run
  std::optional<TimePoint> silent_since;  // its last word, once it is silent beyond the limit
  Round stray{0};  // it has workers of this round, of which nothing shows it a member
  int call = 0;    // the question with which its answer ends that; 0: none was asked
  std::list<Agent*>::iterator silence;
  Claims::Counted counted{};  // by the roster

  [[nodiscard]] const std::string& host() const { return hello.host; }
  /// Whether its node can coordinate the run after this coordinator.
  [[nodiscard]] bool may_follow() const {
    return hello.standby_port != 0 && !hello.runs_coordinator;
  }
};

/// Whether workers may still be alive.
[[nodiscard]] bool is_active(protocol::NodeState state);
/// A node that says so of `round` has no worker of the ones before.
void hear_of_left(Agent& agent, protocol::NodeState state, Round round);
/// Whether workers of `round`, or of one before it, may be left on the node.
[[nodiscard]] bool may_have(const Agent& agent, Round round);

class Roster {
 public:
  /// The agent must be new, its node rank (if any) free.
  Agent& add(protocol::Hello hello, LinkId link, Peer peer, TimePoint now);
  /// Gives a known agent another link; the old one is forgotten.
  void relink(Agent& agent, LinkId link, Peer peer);
  /// Its link is gone, the agent is not: it is away, with kNoLink, until relink().
  void unlink(Agent& agent);
  void remove(Agent& agent);
  /// Moves to the end of the silence list, unless it is silent. `now` must not go back.
  void heard(Agent& agent, TimePoint now);
  /// It is silent beyond the limit: until end_silence(), whatever is heard of it.
  void begin_silence(Agent& agent);
  void end_silence(Agent& agent, TimePoint now);
  void set_state(Agent& agent, protocol::NodeState state);
  /// It has this place in a round that starts.
  void place(Agent& agent, const Placement& placement, const protocol::RoundStamp& stamp,
             TimePoint now);
  /// It claimed a round of no run that is here: it is a node that joins.
  void forget_claim(Agent& agent);
  /// Its round, or what it claims of that, has changed.
  void recount(Agent& agent) { claims_.count(agent); }

  [[nodiscard]] Agent* by_id(const AgentId& id) const;
  [[nodiscard]] Agent* by_link(LinkId link) const;
  [[nodiscard]] Agent* by_node_rank(int node_rank) const;
  /// Longest silent first; above all those that are silent beyond the limit.
  [[nodiscard]] const std::list<Agent*>& by_silence() const { return silence_; }
  /// The first one that is not; null: none. Costs a step for each one that is.
  [[nodiscard]] Agent* longest_heard() const;
  /// Hosts of those that are, longest silent first.
  [[nodiscard]] std::vector<std::string> silent_hosts() const;
  /// How many are.
  [[nodiscard]] int silent() const { return silent_; }
  /// How many are not.
  [[nodiscard]] int heard() const { return size() - silent_; }
  [[nodiscard]] int size() const { return static_cast<int>(agents_.size()); }
  [[nodiscard]] bool empty() const { return agents_.empty(); }
  /// Agents without a link.
  [[nodiscard]] int away() const { return away_; }
  /// Agents whose workers may still be alive.
  [[nodiscard]] int active() const { return active_; }
  /// Agents whose workers were not all started: those of the round before may still be ending.
  [[nodiscard]] int starting() const { return starting_; }
  [[nodiscard]] const Claims& claims() const { return claims_; }
  /// Of a claimed round, those that are connected, longest silent first.
  [[nodiscard]] std::vector<Agent*> members_of(const protocol::RoundStamp& stamp) const;

 private:
  std::unordered_map<std::string, std::unique_ptr<Agent>> agents_;
  std::unordered_map<std::uint64_t, Agent*> links_;
  std::unordered_map<int, Agent*> node_ranks_;
  std::list<Agent*> silence_;
  Claims claims_;
  std::uint64_t arrivals_ = 0;
  int active_ = 0;
  int away_ = 0;
  int silent_ = 0;
  int starting_ = 0;
};

}  // namespace ddprun::round
