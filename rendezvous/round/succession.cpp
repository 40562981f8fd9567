#include "rendezvous/round/succession.hpp"

#include <algorithm>

#include "base/address.hpp"
#include "rendezvous/protocol/limits.hpp"

namespace ddprun::round {

bool may_lead(const protocol::Lead& lead, const KnownRun& known) {
  const std::string own = protocol::name_of_origin(known.origin);
  if (!own.empty() && protocol::name_of_origin(lead.origin) == own) return true;
  const bool is_fixed = known.terms.nodes_min == known.terms.nodes_max;
  if (is_fixed && known.has_round) return false;
  return lead.fingerprint == command_key(known.terms, known.fingerprint);
}

std::vector<Agent*> members_of(const ClaimedRound& claimed, const Roster& roster) {
  std::vector<Agent*> members;
  for (Agent* agent : roster.by_silence()) {
    if (agent->counted.is_here && agent->last == claimed.stamp) members.push_back(agent);
  }
  return members;
}

bool is_majority(const ClaimedRound& claimed, int ended) {
  const protocol::Succession& succession = claimed.succession;
  const bool may_be = !succession.after_unsettled && claimed.votes >= succession.needs;
  return (claimed.settled() || may_be) && 2 * claimed.here > claimed.size - ended;
}

std::vector<protocol::Successor> successors_for(const Agent& receiver,
                                                const std::vector<Agent*>& members,
                                                const std::string& coordinator_address) {
  std::vector<protocol::Successor> successors;
  for (const Agent* member : members) {
    if (successors.size() == protocol::kSuccessorsMax) break;
    if (member == nullptr || !may_follow(*member)) continue;
    successors.push_back({member->group_rank, member->host(),
                          address_for(receiver, *member, coordinator_address),
                          member->hello.standby_port});
  }
  return successors;
}

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

}  // namespace

std::string shared_address(const std::vector<Agent*>& members) {
  for (const Agent* member : members) {
    if (member == nullptr || is_beside_coordinator(*member)) continue;
    const std::string& own = member->peer.local_address;
    if (!is_link_local_literal(own)) return own;  // which needs the zone of each host
  }
  return "";
}

// Other agents reach an agent beside the coordinator where they reach the coordinator.
std::string address_for(const Agent& receiver, const Agent& agent,
                        const std::string& coordinator_address) {
  // A node may not reach itself through it.
  if (&receiver == &agent && is_forwarded(agent)) return agent.hello.addresses.front();
  if (!agent.hello.address.empty()) return agent.hello.address;
  if (!is_beside_coordinator(agent)) return agent.peer.address;
  if (!is_beside_coordinator(receiver)) return reached_by(receiver);
  if (!coordinator_address.empty()) return coordinator_address;
  return reached_by(receiver).empty() ? agent.peer.address : reached_by(receiver);
}

}  // namespace ddprun::round
