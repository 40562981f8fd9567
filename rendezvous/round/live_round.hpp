// LiveRound: the round whose workers run: its members, what they were sent and what they answered.
// Pure; the Roster owns the agents, and forget() takes one out before it is removed there.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "rendezvous/round/roster.hpp"

namespace ddprun::round {

/// The first failure of a round.
struct Failure {
  TimePoint at;  // on the coordinator's clock
  AgentId agent;
  WorkerExit exit;
  Round round{0};
};

/// The ranks of these agents, in this order.
[[nodiscard]] std::vector<Placement> assign_ranks(const std::vector<Agent*>& members);

class LiveRound {
 public:
  /// No round: the run ends between two.
  LiveRound() = default;
  /// `start` has what is the same for all members; the members, by group rank, have their
  /// placement.
  LiveRound(protocol::StartRound start, std::vector<Agent*> members, TimePoint now);

  /// This agent is removed: its place stays empty.
  void forget(const Agent& agent);
  /// This member has taken on the round.
  void answered(Agent& agent);
  /// This member has to answer a question, instead of an older one.
  void ask(Agent& agent, int question);
  /// This member has answered a question, perhaps an older one.
  void echoed(Agent& agent, int question);
  /// All workers of this member have exited with 0.
  void succeeded(Agent& agent);
  /// All its members know that it is settled, if they may follow the coordinator.
  void tell_settled(Outbox& out) const;
  /// All workers of some member run.
  void runs(TimePoint now) { running_since_ = now; }
  /// The first failure of one member; reports may overtake each other, and one that complains of
  /// other ranks is not the first if one of these has failed.
  void add(Failure failure);

  [[nodiscard]] bool has(const Agent& agent) const;
  [[nodiscard]] const protocol::RoundStamp& stamp() const { return start_.stamp; }
  /// By group rank; null: finished and disconnected.
  [[nodiscard]] const std::vector<Agent*>& members() const { return members_; }
  /// Whether it cannot continue without this agent. A member whose workers have all succeeded is
  /// missed only if it holds the store.
  [[nodiscard]] bool needs(const Agent& agent) const;
  /// Whether the coordinator on this node can leave: the members on other nodes can elect another
  /// one, although the kernel of this host refuses their connections.
  [[nodiscard]] bool can_follow(const Agent& own) const;
  /// Whether members on other nodes, which are connected, have yet to take it on.
  [[nodiscard]] bool awaits_others(const Agent& own) const;
  /// Members that have not reported success, also those that were lost.
  [[nodiscard]] std::set<AgentId> unfinished() const;
  /// Members, also those that finished and have disconnected.
  [[nodiscard]] int nodes() const { return static_cast<int>(members_.size()); }
  /// Members without those.
  [[nodiscard]] int present() const { return present_; }
  /// Votes with which it is settled.
  [[nodiscard]] int votes_needed() const { return start_.succession.needs; }
  [[nodiscard]] int world_size() const { return start_.world_size.value(); }
  /// Answers that are still to come: members that take on the round, and to questions.
  [[nodiscard]] int unanswered() const { return unanswered_ + asked_; }
  [[nodiscard]] int finished() const { return succeeded_; }
  [[nodiscard]] bool all_succeeded() const;
  /// Since the last node reported its workers running.
  [[nodiscard]] Duration lived(TimePoint now) const { return now - running_since_; }
  [[nodiscard]] const std::optional<Failure>& first_failure() const { return first_failure_; }
  [[nodiscard]] protocol::StartRound message_for(const Agent& member) const;
  /// The nodes that follow the coordinator, as a member or a node that waits reaches them.
  [[nodiscard]] std::vector<protocol::Successor> successors_for(const Agent& receiver) const;

 private:
  [[nodiscard]] std::vector<std::string> store_peers() const;

  protocol::StartRound start_;
  std::vector<Agent*> members_;
  std::vector<AgentId> lost_;   // members that are removed, and had not finished
  std::string shared_address_;  // of the coordinator's machine
  int present_ = 0;
  int unanswered_ = 0;  // members that have not taken on the round
  int asked_ = 0;       // members that have not answered a question
  int succeeded_ = 0;
  TimePoint running_since_{};             // when the last node reported so; before that, the start
  std::optional<Failure> first_failure_;  // as far as is known
};

}  // namespace ddprun::round
