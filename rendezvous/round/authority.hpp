// Authority: whether this coordinator may decide for its run (docs/FAILOVER.md). One that no other
// node may follow always may. Where others may, it may while a majority of the last settled round
// is here; one that comes after a coordinator that was lost, a candidate, has to gather that
// majority first. It is asked before each decision and keeps no answer: a process may have been
// suspended since the last one. (A lease of etcd stands before that: without it the shell hands on
// nothing, coordinator/held.hpp.) Pure, owned by Run; O(1) per message.
#pragma once

#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "rendezvous/round/roster.hpp"
#include "rendezvous/round/rounds.hpp"

namespace ddprun::round {

/// What a coordinator knows of those before it and after it, in runs in which the node that
/// coordinates may be lost.
struct SuccessionOptions {
  bool exists = false;       // other nodes may coordinate the run
  bool at_endpoint = false;  // this coordinator listens where the run's endpoint is
  /// Set if this one comes after a coordinator that was lost: it decides nothing without a
  /// majority.
  struct Candidate {
    std::string ended_author;  // of the rounds whose coordinator has ended for sure; else empty
    std::string why;           // for people: what became of it
    std::string origin;        // of the run, as the node of this one was told; empty: it was not
  };
  std::optional<Candidate> candidate{};
};

/// What a coordinator, or a node that comes to it, knows of its run when it hears a `lead`.
struct KnownRun {
  const protocol::Terms& terms;
  const std::string& fingerprint;
  const std::string& origin;  // empty: not known
  bool has_round = false;
};

/// Whether who says `lead`, without a secret, may coordinate that run: it was told the origin, as
/// only members of rounds are; or it shows what a node that joins shows, where a node that joins
/// could do as much. In a run of a fixed number of nodes that has a round it could not.
[[nodiscard]] bool may_lead(const protocol::Lead& lead, const KnownRun& known);

/// What nodes of a run that knows no round yet have in common; "": their commands may differ.
[[nodiscard]] inline std::string command_key(const protocol::Terms& terms,
                                             const std::string& fingerprint) {
  return terms.commands_may_differ ? "" : fingerprint;
}

/// A candidate waits so long for a majority: who cannot get one is back at a coordinator that was
/// suspended before that one takes it for lost.
[[nodiscard]] inline Duration candidate_wait(const protocol::Terms& terms) {
  return Duration(terms.silence_max()) / 2;
}

/// The rest of a majority is waited for so long: this part of the silence limit.
inline constexpr int kMajorityGraceShare = 10;

/// Majority: which members of the last settled round can still decide what follows it, so that no
/// two rounds ever follow the same one (docs/FAILOVER.md). Empty, it asks for nothing: before the
/// first round, and in runs whose coordinator no other node follows.
class Majority {
 public:
  /// How a member was lost. A process that has ended takes on no other round; one that is silent
  /// may be on the other side of a partition.
  enum class Loss { kEnded, kSilent };
  /// Who decides after the settled round: its own coordinator, or one that came after it.
  enum class By { kAuthor, kCandidate };

  /// The round that the next one is measured by.
  struct Base {
    protocol::RoundStamp stamp;
    std::vector<Agent*> voters;  // its members that are here
    int absent = 0;              // its other members
    int ended = 0;               // of these, known to have ended
    By by = By::kAuthor;
    int least = 0;  // votes that the next one needs at least; above 0 no other voter is taken in
  };
  void settle(const Base& base);
  void clear() { *this = Majority(); }

  /// A member is gone; others are ignored.
  void lose(const AgentId& agent, Loss loss);
  /// A member that was silent has answered on the link that it had: it has claimed no other round.
  void answers(const AgentId& agent);
  /// An agent claims this round. If that is the settled one, or a later one of `author`, which
  /// decides here, a member is here again; with another coordinator's it has voted elsewhere, and
  /// does not come back.
  void take_claim(const AgentId& agent, const protocol::RoundStamp& stamp,
                  const std::string& author);

  /// The settled round; number 0: none.
  [[nodiscard]] const protocol::RoundStamp& stamp() const { return stamp_; }
  [[nodiscard]] bool is_known() const { return size_ > 0; }
  /// No node knew whether its round was settled.
  [[nodiscard]] bool is_of_unsettled() const { return least_ > 0; }
  [[nodiscard]] bool has_vote(const AgentId& agent) const;
  /// Of its members, those that are here.
  [[nodiscard]] int here() const { return here_; }
  /// Members with which the next round may be formed; 0 without a settled one.
  [[nodiscard]] int needed() const;
  /// Votes with which that is settled.
  [[nodiscard]] int needed_to_settle() const;
  [[nodiscard]] bool is_here() const { return here_ >= needed(); }

 private:
  enum class Standing { kHere, kEnded, kSilent, kVotedElsewhere };
  void lose_vote(const AgentId& agent);
  void take_back(Standing& standing);
  [[nodiscard]] bool decides_tie() const {
    return by_ == By::kAuthor && least_ == 0 && size_ - ended_ == 2;
  }

  protocol::RoundStamp stamp_;
  std::unordered_map<std::string, Standing> members_;  // without those that were absent
  int size_ = 0;
  int here_ = 0;
  int ended_ = 0;
  int least_ = 0;
  By by_ = By::kAuthor;
};

/// The votes of the round that lives.
struct LiveVotes {
  Majority members{};  // of it, for what follows it
  int needs = 0;
  int votes = 0;
  bool settled = false;
};

class Authority {
 public:
  Authority(SuccessionOptions options, std::string author);

  /// Other nodes may coordinate the run: each round says how the next one can follow it.
  [[nodiscard]] bool is_shared() const { return options_.exists; }
  [[nodiscard]] bool may_decide() const { return !is_candidate() && base_.is_here(); }
  /// Not even for what its agents see: it does not know yet whether the run is its own.
  [[nodiscard]] bool is_candidate() const { return options_.candidate && !base_.is_known(); }
  /// What is missing, for people.
  [[nodiscard]] std::string missing_text() const;
  /// Why it coordinates a run that another one did before it, for people.
  [[nodiscard]] std::string why_here() const;
  /// The settled round that it decides after; none: it may not decide, or has no round.
  [[nodiscard]] std::optional<Round> decides_after() const;
  /// The settled round by which the next one is measured; number 0: none.
  [[nodiscard]] const protocol::RoundStamp& base() const { return base_.stamp(); }

  // Another coordinator that says it leads.
  /// It leads a run that began apart from this one, while they did not hear each other.
  [[nodiscard]] bool began_apart(const protocol::Lead& lead, const Rounds& rounds) const;
  /// Whether it has the nodes of this run. A coordinator whose majority is here cannot have been
  /// replaced; of two runs that began apart one yields.
  [[nodiscard]] bool yields_to(const protocol::Lead& lead, const Rounds& rounds) const;

  // Rounds that agents claim.
  /// Members that are known to have ended.
  [[nodiscard]] int ended_of(const ClaimedRound& claimed) const;
  /// The newest round of which a majority is here.
  [[nodiscard]] std::optional<ClaimedRound> majority_round(const Claims& claims) const;
  /// The same, if it follows the base and another coordinator decided it: that one is lost.
  [[nodiscard]] std::optional<ClaimedRound> newer_round(const Claims& claims) const;
  /// This coordinator decides what follows the round.
  void measure_by(const ClaimedRound& claimed, const Roster& roster);

  // The round that lives.
  /// What a round of these members says of its place after the base.
  [[nodiscard]] protocol::Succession succession_of(const std::vector<Agent*>& members,
                                                   const std::string& origin) const;
  [[nodiscard]] bool has_vote(const Agent& agent) const;
  void begin_round(const protocol::RoundStamp& stamp, const std::vector<Agent*>& members,
                   int needs);
  /// All members of a round of the coordinator before this one are back.
  void adopt_round(const protocol::RoundStamp& stamp, const std::vector<Agent*>& members);
  /// A member with a vote has taken it on: whether it is settled by that.
  [[nodiscard]] bool vote();
  [[nodiscard]] bool is_settled() const { return live_ && live_->settled; }
  [[nodiscard]] bool awaits_votes() const { return live_ && !live_->settled; }
  void end_round() { live_.reset(); }
  /// No agent is left that remembers the run.
  void begin_new_run() { base_.clear(); }

  // Members of the base, or of the round that lives; others are ignored.
  void lose(const Agent& agent, Majority::Loss loss);
  /// One that was silent has answered on the link that it had.
  void hear(const Agent& agent);
  /// One claims this round.
  void take_claim(const Agent& agent, const protocol::RoundStamp& stamp);

 private:
  [[nodiscard]] bool has_author_ended(const protocol::RoundStamp& stamp,
                                      bool was_at_endpoint) const;
  void settle_if_due();

  SuccessionOptions options_;
  std::string author_;
  Majority base_;
  std::optional<LiveVotes> live_;  // only where others may follow
};

}  // namespace ddprun::round
