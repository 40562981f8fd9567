#include "rendezvous/round/claimed_places.hpp"

#include <algorithm>
#include <tuple>

namespace ddprun::round {

bool ClaimedPlaces::take(Agent& agent, const protocol::Claim& claim) {
  // Its first claim of a round counts: an agent has one place, that of its group rank.
  const bool counts = agent.last == claim.stamp && agent.group_rank == claim.group_rank;
  if (!counts || claim.group_rank >= claim.group_size) return false;
  auto found = std::find_if(rounds_.begin(), rounds_.end(),
                            [&claim](const Claimed& one) { return one.stamp == claim.stamp; });
  if (found == rounds_.end()) {
    found = rounds_.insert(found, Claimed{claim.stamp, claim.group_size});
  }
  found->restarts.used = std::max(found->restarts.used, claim.restarts);
  found->restarts.is_told = found->restarts.is_told || claim.restart_told;
  if (found->size != claim.group_size) return false;
  const bool is_free = found->members.emplace(claim.group_rank, &agent).second;
  choose();
  return is_free;
}

ClaimedPlaces::Restarts ClaimedPlaces::restarts(const protocol::RoundStamp& stamp) const {
  const auto found = std::find_if(rounds_.begin(), rounds_.end(),
                                  [&stamp](const Claimed& one) { return one.stamp == stamp; });
  return found == rounds_.end() ? Restarts{} : found->restarts;
}

void ClaimedPlaces::ended(const Agent& agent) {
  const auto found = of(agent);
  if (found != rounds_.end()) found->is_broken = true;
}

void ClaimedPlaces::forget(const Agent& agent) {
  const auto found = of(agent);
  if (found == rounds_.end()) return;
  found->members.erase(agent.group_rank);
  choose();
}

const ClaimedPlaces::Claimed& ClaimedPlaces::most() const {
  static const Claimed kNone;
  return most_ < rounds_.size() ? rounds_[most_] : kNone;
}

/// The round in which this agent has a place.
std::vector<ClaimedPlaces::Claimed>::iterator ClaimedPlaces::of(const Agent& agent) {
  return std::find_if(rounds_.begin(), rounds_.end(), [&agent](const Claimed& one) {
    const auto place = one.members.find(agent.group_rank);
    return place != one.members.end() && place->second == &agent;
  });
}

// Of a round whose members have all gone the last one is kept: they may come back to it.
void ClaimedPlaces::choose() {
  const auto is_empty = [](const Claimed& one) { return one.members.empty(); };
  if (!std::all_of(rounds_.begin(), rounds_.end(), is_empty)) std::erase_if(rounds_, is_empty);
  const auto rank = [](const Claimed& one) {
    return std::tuple(one.members.size(), one.stamp.number);
  };
  const auto most = std::max_element(
      rounds_.begin(), rounds_.end(),
      [&rank](const Claimed& left, const Claimed& right) { return rank(left) < rank(right); });
  most_ = static_cast<std::size_t>(most - rounds_.begin());
}

}  // namespace ddprun::round
