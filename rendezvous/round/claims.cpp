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

}  // namespace ddprun::round
