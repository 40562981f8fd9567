#include "rendezvous/round/roster.hpp"

#include <algorithm>

#include <iterator>
#include <utility>

#include "base/assert.hpp"

namespace ddprun::round {

bool is_active(protocol::NodeState state) {
  using enum protocol::NodeState;
  return state == kStarting || state == kRunning || state == kFailed || state == kStopping;
}

void hear_of_left(Agent& agent, protocol::NodeState state, Round round) {
  const bool has_begun =
      state == protocol::NodeState::kRunning || state == protocol::NodeState::kFailed;
  if (has_begun) agent.left = std::max(agent.left, Round(round.value() - 1));
}

bool may_have(const Agent& agent, Round round) {
  const bool has_stray = agent.stray > Round(0) && agent.stray <= round;
  return has_stray || (agent.left < round && is_active(agent.state));
}

Agent& Roster::add(protocol::Hello hello, LinkId link, Peer peer, TimePoint now) {
  auto owned = std::make_unique<Agent>();
  Agent& agent = *owned;
  agent.hello = std::move(hello);
  agent.link = link;
  agent.peer = std::move(peer);
  agent.arrival = ++arrivals_;
  agent.heard = agent.greeted_at = now;
  agent.store_port = agent.hello.store_port;
  agent.silence = silence_.insert(silence_.end(), &agent);
  const bool is_new = agents_.emplace(agent.hello.agent.value(), std::move(owned)).second;
  DDPRUN_ASSERT(is_new);
  links_[link.value()] = &agent;
  if (agent.hello.node_rank) {
    const bool is_free = node_ranks_.emplace(*agent.hello.node_rank, &agent).second;
    DDPRUN_ASSERT(is_free);
  }
  recount(agent);
  return agent;
}

void Roster::relink(Agent& agent, LinkId link, Peer peer) {
  if (agent.link != kNoLink) unlink(agent);
  --away_;
  agent.link = link;
  agent.peer = std::move(peer);
  links_[link.value()] = &agent;
  recount(agent);
}

void Roster::unlink(Agent& agent) {
  links_.erase(agent.link.value());
  agent.link = kNoLink;
  ++away_;
  recount(agent);
}

void Roster::remove(Agent& agent) {
  set_state(agent, protocol::NodeState::kIdle);
  if (agent.link != kNoLink) unlink(agent);
  --away_;
  if (agent.silent_since) --silent_;
  if (agent.hello.node_rank) node_ranks_.erase(*agent.hello.node_rank);
  silence_.erase(agent.silence);
  claims_.forget(agent);
  const std::string id = agent.hello.agent.value();
  agents_.erase(id);
}

void Roster::heard(Agent& agent, TimePoint now) {
  DDPRUN_ASSERT(now >= agent.heard);
  agent.heard = now;
  if (!agent.silent_since) silence_.splice(silence_.end(), silence_, agent.silence);
}

// The order of the list stays: it was the first of those that are heard.
void Roster::begin_silence(Agent& agent) {
  DDPRUN_ASSERT(&agent == longest_heard());
  agent.silent_since = agent.heard;
  agent.call = 0;
  ++silent_;
}

void Roster::end_silence(Agent& agent, TimePoint now) {
  if (!std::exchange(agent.silent_since, std::nullopt)) return;
  agent.call = 0;
  --silent_;
  heard(agent, now);
}

Agent* Roster::longest_heard() const {
  const auto first = std::next(silence_.begin(), silent_);
  return first == silence_.end() ? nullptr : *first;
}

std::vector<std::string> Roster::silent_hosts() const {
  std::vector<std::string> hosts;
  std::transform(silence_.begin(), std::next(silence_.begin(), silent_), std::back_inserter(hosts),
                 [](const Agent* agent) { return agent->host(); });
  return hosts;
}

void Roster::set_state(Agent& agent, protocol::NodeState state) {
  const auto count = [this, &agent](int change) {
    if (is_active(agent.state)) active_ += change;
    if (agent.state == protocol::NodeState::kStarting) starting_ += change;
  };
  count(-1);
  agent.state = state;
  count(1);
  recount(agent);
}

void Roster::place(Agent& agent, const Placement& placement, const protocol::RoundStamp& stamp,
                   TimePoint now) {
  if (agent.since == Round(0)) agent.since = stamp.number;
  const bool has_none = agent.runs == Round(0) || !is_active(agent.state);
  const bool is_stray = std::exchange(agent.stray, Round(0)) > Round(0);
  if (has_none && !is_stray) agent.left = Round(stamp.number.value() - 1);
  agent.last = stamp;
  agent.runs = stamp.number;
  agent.group_rank = placement.group_rank;
  agent.placement = placement;
  agent.answered = false;
  if (agent.came_later && !agent.taken_in) agent.taken_in_at = now;
  agent.taken_in = agent.came_later;
  agent.question = 0;
  agent.failure.reset();
  agent.running_at = now;
  set_state(agent, protocol::NodeState::kStarting);
}

void Roster::forget_claim(Agent& agent) {
  agent.last = {};
  agent.group_rank = -1;
  agent.placement = {};
  agent.succession = {};
  agent.runs = agent.left = Round(0);
  agent.settled = agent.cut_short = agent.failed_heard = false;
  agent.failure.reset();
  set_state(agent, protocol::NodeState::kIdle);
}

Agent* Roster::by_id(const AgentId& id) const {
  const auto found = agents_.find(id.value());
  return found == agents_.end() ? nullptr : found->second.get();
}

Agent* Roster::by_link(LinkId link) const {
  const auto found = links_.find(link.value());
  return found == links_.end() ? nullptr : found->second;
}

Agent* Roster::by_node_rank(int node_rank) const {
  const auto found = node_ranks_.find(node_rank);
  return found == node_ranks_.end() ? nullptr : found->second;
}

std::vector<Agent*> Roster::members_of(const protocol::RoundStamp& stamp) const {
  std::vector<Agent*> members;
  std::copy_if(silence_.begin(), silence_.end(), std::back_inserter(members),
               [&](const Agent* agent) { return agent->counted.is_here && agent->last == stamp; });
  return members;
}

}  // namespace ddprun::round
