#include "rendezvous/round/live_round.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/address.hpp"
#include "rendezvous/protocol/limits.hpp"
#include "rendezvous/round/culprit.hpp"

namespace ddprun::round {

namespace {

/// How an agent on the coordinator's machine reached it proves nothing about other machines.
bool is_beside_coordinator(const Agent& agent) {
  const Peer& peer = agent.peer;
  const bool same_host = !peer.address.empty() && peer.address == peer.local_address;
  return same_host || agent.hello.runs_coordinator || is_loopback_literal(peer.address);
}

/// Behind a forwarded address the coordinator's socket has another one than the agent connected to.
const std::string& reached_by(const Agent& agent) {
  return agent.hello.reached.empty() ? agent.peer.local_address : agent.hello.reached;
}

/// What its user gave is none of its interfaces' addresses.
bool is_forwarded(const Agent& agent) {
  const auto& own = agent.hello.addresses;
  const std::string& given = agent.hello.address;
  return !given.empty() && !own.empty() && !is_loopback_literal(given) &&
         std::find(own.begin(), own.end(), given) == own.end();
}

/// The address of the coordinator's machine at which the first remote member's connection arrived;
/// empty: there is none. Processes of that machine use it, too.
[[nodiscard]] std::string shared_address(const std::vector<Agent*>& members) {
  for (const Agent* member : members) {
    if (member == nullptr || is_beside_coordinator(*member)) continue;
    const std::string& own = member->peer.local_address;
    if (!is_link_local_literal(own)) return own;  // which needs the zone of each host
  }
  return "";
}

/// Where `receiver` reaches what `agent` listens for. `shared`: see shared_address(). Other agents
/// reach an agent beside the coordinator where they reach the coordinator.
[[nodiscard]] std::string address_for(const Agent& receiver, const Agent& agent,
                                      const std::string& shared) {
  // A node may not reach itself through it.
  if (&receiver == &agent && is_forwarded(agent)) return agent.hello.addresses.front();
  if (!agent.hello.address.empty()) return agent.hello.address;
  if (!is_beside_coordinator(agent)) return agent.peer.address;
  if (!is_beside_coordinator(receiver)) return reached_by(receiver);
  if (!shared.empty()) return shared;
  return reached_by(receiver).empty() ? agent.peer.address : reached_by(receiver);
}

}  // namespace

std::vector<Placement> assign_ranks(const std::vector<Agent*>& members) {
  std::vector<Slot> slots;
  slots.reserve(members.size());
  for (const Agent* agent : members) {
    slots.push_back({agent->hello.local_world_size, agent->hello.role});
  }
  return assign_ranks(slots);
}

LiveRound::LiveRound(protocol::StartRound start, std::vector<Agent*> members, TimePoint now)
    : start_(std::move(start)), members_(std::move(members)), running_since_(now) {
  start_.group_size = nodes();
  present_ = nodes();
  for (const Agent* member : members_) {
    if (!member->answered) ++unanswered_;
    if (member->state == protocol::NodeState::kSucceeded) ++succeeded_;
  }
  shared_address_ = shared_address(members_);
}

void LiveRound::forget(const Agent& agent) {
  // One that has claimed another round, or place, since is a member here all the same.
  const auto at = has(agent) ? std::next(members_.begin(), agent.group_rank)
                             : std::find(members_.begin(), members_.end(), &agent);
  if (at == members_.end()) return;
  *at = nullptr;
  if (agent.state != protocol::NodeState::kSucceeded) lost_.push_back(agent.hello.agent);
  --present_;
  if (!agent.answered) --unanswered_;
  if (agent.question != 0) --asked_;
}

void LiveRound::answered(Agent& agent) {
  if (!std::exchange(agent.answered, true)) --unanswered_;
}

void LiveRound::ask(Agent& agent, int question) {
  if (std::exchange(agent.question, question) == 0) ++asked_;
}

void LiveRound::echoed(Agent& agent, int question) {
  if (agent.question == 0 || agent.question != question) return;
  agent.question = 0;
  --asked_;
}

void LiveRound::succeeded(Agent& agent) {
  ++succeeded_;
  echoed(agent, agent.question);  // there is nothing left to ask
}

void LiveRound::tell_settled(Outbox& out) const {
  for (const Agent* member : members_) {
    if (member != nullptr && member->may_follow()) {
      out.send(member->link, protocol::Settled{stamp()});
    }
  }
}

bool LiveRound::needs(const Agent& agent) const {
  const bool done = agent.state == protocol::NodeState::kSucceeded && agent.group_rank != 0;
  return has(agent) && !done;
}

bool LiveRound::can_follow(const Agent& own) const {
  int here = 0;
  bool has_successor = false;
  for (const Agent* member : members_) {
    if (member == nullptr || member == &own || member->link == kNoLink) continue;
    if (member->silent_since) continue;
    ++here;
    has_successor = has_successor || member->may_follow();
  }
  return has_successor && 2 * here > nodes() - (has(own) ? 1 : 0);
}

bool LiveRound::awaits_others(const Agent& own) const {
  if (unanswered() <= (own.answered ? 0 : 1)) return false;
  return std::any_of(members_.begin(), members_.end(), [&own](const Agent* member) {
    return member != nullptr && member != &own && !member->answered && member->link != kNoLink;
  });
}

bool LiveRound::has(const Agent& agent) const {
  const auto place = static_cast<std::size_t>(agent.group_rank);
  return agent.last == stamp() && agent.group_rank >= 0 && place < members_.size() &&
         members_[place] == &agent;
}

std::set<AgentId> LiveRound::unfinished() const {
  std::set<AgentId> agents(lost_.begin(), lost_.end());
  for (const Agent* member : members_) {
    if (member == nullptr || member->state == protocol::NodeState::kSucceeded) continue;
    agents.insert(member->hello.agent);
  }
  return agents;
}

bool LiveRound::all_succeeded() const {
  return succeeded_ >= nodes();
}

void LiveRound::add(Failure failure) {
  std::optional<TimePoint> first;
  if (first_failure_) first = first_failure_->at;
  if (first_failure_ && is_cause(first_failure_->exit, failure.exit)) return;
  const bool explains = first_failure_ && is_cause(failure.exit, first_failure_->exit);
  if (explains || is_first_failure({failure.at, failure.exit.status}, first)) {
    first_failure_ = std::move(failure);
  }
}

protocol::StartRound LiveRound::message_for(const Agent& member) const {
  protocol::StartRound start = start_;
  start.group_rank = member.placement.group_rank;
  start.rank_base = member.placement.rank_base;
  start.role_rank_base = member.placement.role_rank_base;
  start.role_world_size = member.placement.role_world_size;
  start.master_address = address_for(member, *members_.front(), shared_address_);
  start.succession = member.succession;
  if (member.succession.exists()) start.successors = successors_for(member);
  if (start.group_rank == 0) start.store_peers = store_peers();
  return start;
}

// Workers may come from another interface than their agent. None where a member does not tell its
// addresses: a store that accepted only the others would fail the round.
std::vector<std::string> LiveRound::store_peers() const {
  std::set<std::string> all;
  for (const Agent* member : members_) {
    if (member == nullptr || member->hello.addresses.empty()) return {};
    for (const std::string& address : worker_addresses(member->hello, member->peer)) {
      std::string plain = plain_literal(address);
      if (!plain.empty() && !is_loopback_literal(plain)) all.insert(std::move(plain));
    }
    if (all.size() > protocol::kStorePeersMax) return {};
  }
  return {all.begin(), all.end()};
}

std::vector<protocol::Successor> LiveRound::successors_for(const Agent& receiver) const {
  std::vector<protocol::Successor> successors;
  for (const Agent* member : members_) {
    if (successors.size() == protocol::kSuccessorsMax) break;
    if (member == nullptr || !member->may_follow()) continue;
    successors.push_back({member->group_rank, member->host(),
                          address_for(receiver, *member, shared_address_),
                          member->hello.standby_port});
  }
  return successors;
}

}  // namespace ddprun::round
