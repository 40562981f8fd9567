#include "rendezvous/round/succession.hpp"

#include <algorithm>
#include <map>

#include "base/address.hpp"
#include "rendezvous/protocol/limits.hpp"

namespace ddprun::round {

std::vector<ClaimedRound> claimed_rounds(const Roster& roster) {
  std::map<std::pair<int, std::string>, ClaimedRound> rounds;
  for (Agent* agent : roster.by_silence()) {
    const protocol::Succession& succession = agent->succession;
    if (agent->last.number == Round(0) || !succession.exists() || agent->link == kNoLink) continue;
    ClaimedRound& round = rounds[{-agent->last.number.value(), agent->last.author}];
    round.stamp = agent->last;
    round.size = agent->placement.group_size;
    round.here.push_back(agent);
    round.votes += succession.has_vote ? 1 : 0;
    round.settled = round.settled || agent->settled || succession.needs == 0;
    round.succession = succession;
  }
  std::vector<ClaimedRound> newest_first;
  for (auto& [key, round] : rounds) newest_first.push_back(std::move(round));
  return newest_first;
}

bool is_majority(const ClaimedRound& claimed, int ended) {
  const int here = static_cast<int>(claimed.here.size());
  const protocol::Succession& succession = claimed.succession;
  const bool may_be = !succession.after_unsettled && claimed.votes >= succession.needs;
  return (claimed.settled || may_be) && 2 * here > claimed.size - ended;
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
