#include "rendezvous/round/majority.hpp"

#include <algorithm>

namespace ddprun::round {

void Majority::settle(const Base& base) {
  members_.clear();
  for (const Agent* agent : base.voters) {
    members_.emplace(agent->hello.agent.value(), Standing::kHere);
  }
  stamp_ = base.stamp;
  here_ = static_cast<int>(base.voters.size());
  size_ = here_ + base.absent;
  ended_ = base.ended;
  least_ = base.least;
  by_ = base.by;
}

void Majority::lose(const AgentId& agent, Loss loss) {
  const auto found = members_.find(agent.value());
  if (found == members_.end() || found->second != Standing::kHere) return;
  found->second = loss == Loss::kEnded ? Standing::kEnded : Standing::kSilent;
  --here_;
  if (loss == Loss::kEnded) ++ended_;
}

void Majority::answers(const AgentId& agent) {
  const auto found = members_.find(agent.value());
  if (found != members_.end() && found->second == Standing::kSilent) take_back(found->second);
}

void Majority::take_claim(const AgentId& agent, const protocol::RoundStamp& stamp,
                          const std::string& author) {
  if (!is_known() || stamp.number < stamp_.number) return;
  const bool is_settled_one = stamp == stamp_;
  if (!is_settled_one && stamp.author != author) return lose_vote(agent);
  const bool fits = least_ == 0 && static_cast<int>(members_.size()) < size_;
  if (is_settled_one && fits) members_.emplace(agent.value(), Standing::kSilent);
  const auto found = members_.find(agent.value());
  if (found != members_.end()) take_back(found->second);
}

/// Whatever it claims from now on, also a later round of this coordinator that took it in.
void Majority::lose_vote(const AgentId& agent) {
  const auto found = members_.find(agent.value());
  if (found == members_.end()) return;
  if (found->second == Standing::kHere) --here_;
  if (found->second == Standing::kEnded) --ended_;
  found->second = Standing::kVotedElsewhere;
}

void Majority::take_back(Standing& standing) {
  if (standing == Standing::kHere || standing == Standing::kVotedElsewhere) return;
  if (standing == Standing::kEnded) --ended_;
  standing = Standing::kHere;
  ++here_;
}

bool Majority::has_vote(const AgentId& agent) const {
  const auto found = members_.find(agent.value());
  return !is_known() || (found != members_.end() && found->second == Standing::kHere);
}

// Of two that do not hear each other the one with the coordinator continues, and the other one
// stops. A candidate cannot: it does not know what the coordinator does.
int Majority::needed() const {
  if (!is_known()) return 0;
  return decides_tie() ? 1 : needed_to_settle();
}

// The silent one of two may be refused by the host of the other one when that has ended, and
// continue: until it is back, what comes after the round of two is settled by both.
int Majority::needed_to_settle() const {
  if (!is_known()) return 0;
  if (decides_tie() && ended_ > 0) return 1;
  return std::max((size_ - ended_) / 2 + 1, least_);
}

}  // namespace ddprun::round
