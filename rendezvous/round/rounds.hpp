// Rounds: the rounds of one run, as its coordinator knows them: their numbers, how the last one
// stands, and what shows that a node was in one.
//
// A process that reaches the port of a run without a secret can send a hello with any claim; what
// it cannot know is the name of the coordinator that decided a round, or of where the run began:
// both are random, and told to members alone (docs/SECURITY-MODEL.md). A claim without either makes
// its node no more than one that joins. Pure, owned by Run.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "rendezvous/round/roster.hpp"

namespace ddprun::round {

/// The name of a coordinator process as the author of rounds: with the term in which it was
/// elected, if it was (above 0).
[[nodiscard]] std::string author_name(std::int64_t term, const std::string& unique);
/// With a name that the authors before and after it have, too ("UNIQUE@LINEAGE"): a member of a
/// round of one of them knows it.
[[nodiscard]] std::string author_of_lineage(const std::string& lineage, const std::string& unique);
/// Of an author; empty: it has none.
[[nodiscard]] std::string_view lineage_of(const std::string& author);
/// The term in which it was elected; 0: it was not.
[[nodiscard]] std::int64_t term_of_author(const std::string& author);

/// Rounds that ended before all nodes had reported, and may yet turn out to have succeeded.
inline constexpr std::size_t kInterruptedMax = 64;

class Rounds {
 public:
  /// What its coordinator is, and was told of the run.
  struct Coordinator {
    std::string author;         // of the rounds that it decides
    std::string origin;         // of a run that begins here
    std::string told_origin{};  // of the run that it continues; empty: it was not told
    /// It had a round of this run before it was started again, and its author the same lineage: it
    /// can tell members before it has a round.
    bool knows_members = false;
  };
  explicit Rounds(Coordinator coordinator);

  /// Whether this run has had a round.
  [[nodiscard]] bool formed() const { return formed_; }
  /// The last one that was formed or rebuilt; number 0: none.
  [[nodiscard]] const protocol::RoundStamp& last() const { return last_; }
  /// The highest round that any agent has heard of.
  [[nodiscard]] Round highest() const { return Round(highest_); }

  // Numbers. A coordinator that has formed or rebuilt a round knows where the run is. One that
  // started empty takes in agents with any number, since all that its agents know may be far ahead
  // of it.
  /// Whether a round may have this number: agents of one run know almost the same.
  [[nodiscard]] bool can_be(Round round) const;
  [[nodiscard]] std::optional<protocol::Refused> refusal_of(const protocol::Hello& hello) const;
  /// A new round is above every number that any agent has heard of.
  void lift(Round heard_of);
  /// The run has a round, or goes without the one that agents claimed. Before that, agents of one
  /// run know almost the same: what is far beyond most of these is the word of a stranger, and so
  /// is what one said that has gone.
  void form(const Roster& roster);
  /// The coordinator before this one has had this one.
  void raise(int round);
  /// The next round, of this coordinator.
  const protocol::RoundStamp& next();
  /// The run continues from this one, which another coordinator may have decided.
  void continue_from(const protocol::RoundStamp& stamp, const Roster& roster);
  /// Agents that join now start another run; numbers continue, so that workers of an old round stay
  /// fenced out.
  void begin_new_run();

  // How the last round stands.
  /// A node of it has gone before its ranks succeeded.
  [[nodiscard]] bool is_incomplete() const { return incomplete_; }
  void set_incomplete(bool incomplete) { incomplete_ = incomplete; }
  /// Some of its nodes are away, and may have had its verdict.
  [[nodiscard]] bool others_unknown() const { return others_unknown_; }
  void set_others_unknown(bool unknown) { others_unknown_ = unknown; }
  /// Whether all of its nodes that are here have succeeded, and others are away.
  [[nodiscard]] bool has_succeeded_here(const Roster& roster) const;

  /// A round has ended before all its nodes had reported: its ranks may all have exited with 0
  /// before these heard of that.
  struct Interrupted {
    int world_size = 0;
    int nodes = 0;
    std::set<AgentId> unfinished{};  // members that have not reported success
  };
  void interrupt(Round round, Interrupted interrupted);
  /// The round that has succeeded now that this node has reported the success of its ranks.
  [[nodiscard]] const Interrupted* complete(const AgentId& agent, Round round);

  // Who was in one.
  /// Where the run began, as nodes know; empty: it has no round, or none knew.
  [[nodiscard]] const std::string& origin() const { return origin_; }
  /// The same, as this coordinator knows by itself.
  [[nodiscard]] const std::string& known_origin() const;
  [[nodiscard]] bool began_here() const { return origin_ == coordinator_.origin; }
  void begin_here() { origin_ = coordinator_.origin; }
  void set_origin(std::string origin) { origin_ = std::move(origin); }
  /// Whether only a member of a round of this run can know this.
  [[nodiscard]] bool is_proven(const protocol::RoundStamp& stamp, const std::string& origin) const;
  /// The same of what an agent claims, and of what it was told or has claimed.
  [[nodiscard]] bool is_member(const protocol::Hello& hello) const {
    return hello.claim && is_proven(hello.claim->stamp, hello.claim->succession.origin);
  }
  [[nodiscard]] bool shows(const Agent& agent) const;
  /// A coordinator that has started empty cannot tell: there claims are weighed against each other.
  [[nodiscard]] bool is_of_run(const protocol::RoundStamp& stamp, const std::string& origin) const;
  [[nodiscard]] bool is_of_run(const Agent& agent) const;
  [[nodiscard]] bool is_of_run(const Agent& agent, const protocol::Claim& claim) const;
  /// A round of these is to start. The run that this one was to continue may have been the word of
  /// a stranger, if all that claimed it have gone: whether it is forgotten for that.
  [[nodiscard]] bool forget_taken_up(const std::vector<Agent*>& members);

 private:
  Coordinator coordinator_;
  protocol::RoundStamp last_;
  int highest_ = 0;
  int lifted_ = 0;  // by how much agents have lifted it since there was a round
  bool formed_ = false;
  bool incomplete_ = false;
  bool others_unknown_ = false;
  std::string origin_;
  std::string taken_up_;  // the author of the round of another coordinator before its own
  std::map<int, Interrupted> interrupted_;  // by number: the last kInterruptedMax
};

}  // namespace ddprun::round
