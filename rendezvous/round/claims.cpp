#include "rendezvous/round/claims.hpp"

#include <algorithm>
#include <iterator>

#include "rendezvous/round/roster.hpp"

namespace ddprun::round {

namespace {

[[nodiscard]] Claims::Counted counted_as(const Agent& agent) {
  const protocol::Succession& succession = agent.succession;
  Claims::Counted counted;
  counted.heard_of = std::max(agent.hello.seen, agent.last.number).value();
  counted.is_here = agent.last.number > Round(0) && succession.exists() && agent.link != kNoLink;
  if (!counted.is_here) return counted;
  counted.has_vote = succession.has_vote;
  counted.is_told = agent.settled;
  counted.is_cut_short = agent.cut_short;
  counted.is_at_endpoint = succession.at_endpoint;
  counted.awaits_failure = counts_failure(agent) && !agent.failure;
  counted.key = {-agent.last.number.value(), agent.last.author};
  return counted;
}

}  // namespace

bool counts_failure(const Agent& agent) {
  const bool failed = agent.state == protocol::NodeState::kFailed || agent.failure.has_value();
  return failed && (agent.failed_heard || !agent.succession.with_author);
}

bool ClaimedRound::has_majority(int ended) const {
  const bool may_be_settled = !succession.after_unsettled && votes >= succession.needs;
  return (settled() || may_be_settled) && 2 * here > size - ended;
}

void Claims::count(Agent& agent) {
  Counted now = counted_as(agent);
  if (now == agent.counted) return;
  add(agent, agent.counted, -1);
  add(agent, now, 1);
  agent.counted = std::move(now);
}

void Claims::forget(Agent& agent) {
  add(agent, agent.counted, -1);
  agent.counted = {};
}

void Claims::add(const Agent& agent, const Counted& counted, int change) {
  if (counted.heard_of > 0) {
    heard_ += change;
    if ((heard_of_[counted.heard_of] += change) == 0) heard_of_.erase(counted.heard_of);
  }
  if (!counted.is_here) return;
  ClaimedRound& round = rounds_[counted.key];
  round.here += change;
  round.votes += counted.has_vote ? change : 0;
  round.told += counted.is_told ? change : 0;
  round.cut_short += counted.is_cut_short ? change : 0;
  round.at_endpoint += counted.is_at_endpoint ? change : 0;
  round.failures_to_come += counted.awaits_failure ? change : 0;
  if (round.here == 0) {
    rounds_.erase(counted.key);
  } else if (change > 0) {
    round.stamp = agent.last;
    round.size = agent.placement.group_size;
    round.succession = agent.succession;
  }
}

const ClaimedRound* Claims::find(const protocol::RoundStamp& stamp) const {
  const auto found = rounds_.find({-stamp.number.value(), stamp.author});
  return found == rounds_.end() ? nullptr : &found->second;
}

Round Claims::highest_near_half(int agents, int jump_max) const {
  int half = 0;
  int before = agents - heard_;  // these have heard of none
  const int middle = (agents - 1) / 2;
  for (auto at = heard_of_.begin(); at != heard_of_.end() && before <= middle; ++at) {
    half = at->first;
    before += at->second;
  }
  const auto beyond = heard_of_.upper_bound(half + jump_max);
  return Round(beyond == heard_of_.begin() ? 0 : std::prev(beyond)->first);
}

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
