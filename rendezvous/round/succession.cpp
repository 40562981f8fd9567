#include "rendezvous/round/succession.hpp"

#include <algorithm>

#include "base/address.hpp"
#include "rendezvous/protocol/limits.hpp"

namespace ddprun::round {

bool may_lead(const protocol::Lead& lead, const KnownRun& known) {
  if (!known.origin.empty() && lead.origin == known.origin) return true;
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

// An agent beside the coordinator came over loopback; others reach it where they reach the
// coordinator.
std::string address_for(const Agent& receiver, const Agent& agent,
                        const std::string& coordinator_address) {
  if (!agent.hello.address.empty()) return agent.hello.address;
  if (!is_loopback_literal(agent.peer.address)) return agent.peer.address;
  if (!is_loopback_literal(receiver.peer.address)) return receiver.peer.local_address;
  return coordinator_address.empty() ? agent.peer.address : coordinator_address;
}

}  // namespace ddprun::round
