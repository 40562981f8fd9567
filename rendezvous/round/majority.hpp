// Majority: which members of the last settled round can still decide what follows it, so that no
// two rounds ever follow the same one (docs/FAILOVER.md). Empty, it asks for nothing: before the
// first round, and in runs whose coordinator no other node follows. Pure, owned by Run.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "rendezvous/round/roster.hpp"

namespace ddprun::round {

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

}  // namespace ddprun::round
