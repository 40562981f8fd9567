#include "rendezvous/round/claimed_places.hpp"

#include <algorithm>

namespace ddprun::round {

bool ClaimedPlaces::take(Agent& agent, const protocol::Claim& claim) {
  // Its first claim of a round counts: an agent has one place, that of its group rank.
  const bool counts = agent.last == claim.stamp && agent.group_rank == claim.group_rank;
  if (!counts || claim.group_rank >= claim.group_size) return false;
  const Key key = key_of(claim.stamp);
  const auto [found, is_new] = rounds_.try_emplace(key, Claimed{claim.stamp, claim.group_size});
  Claimed& round = found->second;
  round.restarts.used = std::max(round.restarts.used, claim.restarts);
  round.restarts.is_told = round.restarts.is_told || claim.restart_told;
  bool is_free = false;
  if (round.size == claim.group_size) {
    by_members_.erase({round.here(), key});
    is_free = round.members.emplace(claim.group_rank, &agent).second;
  }
  by_members_.emplace(round.here(), key);
  forget_empty();
  return is_free;
}

ClaimedPlaces::Restarts ClaimedPlaces::restarts(const protocol::RoundStamp& stamp) const {
  const auto found = rounds_.find(key_of(stamp));
  return found == rounds_.end() ? Restarts{} : found->second.restarts;
}

void ClaimedPlaces::ended(const Agent& agent) {
  Claimed* round = of(agent);
  if (round != nullptr) round->is_broken = true;
}

void ClaimedPlaces::forget(const Agent& agent) {
  Claimed* round = of(agent);
  if (round == nullptr) return;
  const Key key = key_of(round->stamp);
  by_members_.erase({round->here(), key});
  round->members.erase(agent.group_rank);
  by_members_.emplace(round->here(), key);
  forget_empty();
}

const ClaimedPlaces::Claimed& ClaimedPlaces::most() const {
  static const Claimed kNone;
  return by_members_.empty() ? kNone : rounds_.at(by_members_.rbegin()->second);
}

ClaimedPlaces::Key ClaimedPlaces::key_of(const protocol::RoundStamp& stamp) {
  return {stamp.number.value(), stamp.author};
}

/// The round in which this agent has a place; null: in none.
ClaimedPlaces::Claimed* ClaimedPlaces::of(const Agent& agent) {
  const auto found = rounds_.find(key_of(agent.last));
  if (found == rounds_.end()) return nullptr;
  const auto place = found->second.members.find(agent.group_rank);
  const bool has_place = place != found->second.members.end() && place->second == &agent;
  return has_place ? &found->second : nullptr;
}

// The last round stays when its members have all gone: they may come back to it.
void ClaimedPlaces::forget_empty() {
  while (by_members_.size() > 1 && by_members_.begin()->first == 0) {
    rounds_.erase(by_members_.begin()->second);
    by_members_.erase(by_members_.begin());
  }
}

}  // namespace ddprun::round
