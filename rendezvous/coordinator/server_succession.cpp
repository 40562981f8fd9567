// A coordinator that learns of another one of its run, and hands its agents over: docs/FAILOVER.md.
#include <spdlog/logger.h>

#include <algorithm>
#include <utility>

#include "base/address.hpp"
#include "rendezvous/coordinator/server_impl.hpp"
#include "rendezvous/protocol/limits.hpp"

namespace ddprun::coordinator {

using namespace protocol;

// The other one has a majority of the nodes of the run. Where this run has no round, or an older
// one, these are not its nodes.
bool Server::Impl::may_hand_over(const Link& link, const Lead& lead) {
  if (!options_.only_run || *options_.only_run != lead.run_id) return false;
  if (!options_.succession.options.exists) return false;
  if (leader_ != link.id && find(leader_) != nullptr) return false;
  return std::none_of(runs_.begin(), runs_.end(), [&lead](const auto& one) {
    return one.second->run.decides_after(lead.round) || !one.second->run.can_be(lead.round);
  });
}

std::optional<Round> Server::Impl::decides_after() const {
  for (const auto& [name, entry] : runs_) {
    if (!entry->finished_at && entry->run.decides_after()) return entry->run.decides_after();
  }
  return std::nullopt;
}

// It holds as long as the other one repeats it on this link.
void Server::Impl::hand_over(Link& link, const Lead& lead) {
  const Moved moved{net::address_text(link.from), lead.port};
  if (moved_ != moved && options_.log) {
    options_.log->info("the run is coordinated by {}", host_and_port(moved.address, moved.port));
  }
  moved_ = moved;
  leader_ = link.id;
  forget_due(link);
  set_due(link);
  send(link, frame_of(Beat{}));  // it is understood
  std::vector<std::shared_ptr<RunEntry>> all;
  for (const auto& [name, entry] : runs_) {
    if (!entry->finished_at) all.push_back(entry);
  }
  links_.for_each([&](Link& other) {
    if (other.run != nullptr && other.state == LinkState::kAgent) send_away(other);
  });
  for (const auto& entry : all) finish_run(*entry);
  // If the other one is gone, a run of this name may begin here.
  for (const auto& entry : all) runs_.erase(entry->id.value());
}

// One that came over loopback is on this machine: the agent goes where it reaches this one.
void Server::Impl::send_away(Link& link) {
  Moved moved = *moved_;
  const round::Peer peer = peer_of(link);
  const bool is_local = is_loopback_literal(moved.address);
  if (is_local && !is_loopback_literal(peer.address)) moved.address = peer.local_address;
  send(link, frame_of(std::move(moved)));
}

}  // namespace ddprun::coordinator
