// A coordinator that learns of another one of its run, and hands its agents over: docs/FAILOVER.md.
#include <spdlog/logger.h>

#include <algorithm>
#include <utility>

#include "base/address.hpp"
#include "rendezvous/coordinator/server_impl.hpp"
#include "rendezvous/protocol/limits.hpp"

namespace ddprun::coordinator {

using namespace protocol;

namespace {

Moved place_of(const Link& link, const Lead& lead) {
  return {net::address_text(link.from), lead.port};
}

bool goes_there(const Hello& hello, const Elsewhere& place) {
  if (place.is_proven) return true;
  const std::string origin = hello.claim ? hello.claim->succession.origin : "";
  return round::may_lead(place.said,
                         {hello.terms, hello.fingerprint, origin, hello.claim.has_value()});
}

}  // namespace

void Server::Impl::on_lead(Link& link, const Lead& lead) {
  if (may_hand_over(link, lead)) return hand_over(link, lead);
  if (introduce(link, lead)) return;
  meet(link, lead);
  const Moved place = place_of(link, lead);
  refuse_as_malformed(link, "a coordinator of run " + lead.run_id.value() + " is said to be at " +
                                host_and_port(place.address, place.port) +
                                ", and this one does not yield to it");
}

// The other one has a majority of the nodes of the run. Where this run has no round, or an older
// one, these are not its nodes.
bool Server::Impl::may_hand_over(const Link& link, const Lead& lead) {
  if (!is_of_own_run(link, lead)) return false;
  // From the same place it comes on another link if the one before is half open.
  const bool is_known =
      !elsewhere() || elsewhere()->link == link.id || elsewhere()->place == place_of(link, lead);
  if (!is_known) return false;
  const bool is_proven = link.tls != nullptr;
  const auto known = runs_.find(lead.run_id.value());
  if (known == runs_.end()) return is_proven || lead.fingerprint == own_key();
  const round::Run& here = known->second->run;
  return here.yields_to(lead, is_proven) && here.rounds().can_be(lead.round);
}

std::string Server::Impl::own_key() const {
  return options_.own ? round::command_key(options_.own->terms, options_.own->fingerprint) : "";
}

/// Whether the hello was answered: the run is coordinated in another place. Who said so may have
/// been no node of this run.
bool Server::Impl::send_there(Link& link, const Hello& hello) {
  if (elsewhere() == nullptr || refusal_of(link, hello)) return false;
  if (!goes_there(hello, *elsewhere_)) {
    elsewhere_.reset();
    return false;
  }
  send_away(link, elsewhere_->place);
  links_.close(link);
  return true;
}

std::optional<LedRound> Server::Impl::led() const {
  for (const auto& [name, entry] : runs_) {
    const auto round = entry->finished_at ? std::nullopt : entry->run.authority().decides_after();
    if (round) return LedRound{*round, protocol::name_of_origin(entry->run.rounds().origin())};
  }
  return std::nullopt;
}

bool Server::Impl::is_of_own_run(const Link& link, const Lead& lead) const {
  return options_.fails_over && options_.only_run && *options_.only_run == lead.run_id &&
         !links_.is_of_another_run(link, lead.run_id.value());
}

/// Two coordinators of runs that began apart learn of each other where both tell that they lead.
bool Server::Impl::introduce(Link& link, const Lead& lead) {
  const bool is_other = elsewhere() != nullptr && elsewhere_->link != link.id;
  const bool may_know = link.tls != nullptr || lead.fingerprint == own_key();
  if (!is_other || !is_of_own_run(link, lead) || !may_know) return false;
  send_away(link, elsewhere_->place);
  links_.close(link);
  return true;
}

/// The other one leads a run that began apart, and is the one to yield: it is told so.
void Server::Impl::meet(const Link& link, const Lead& lead) {
  if (!meets_rival_ || !is_of_own_run(link, lead)) return;
  const auto known = runs_.find(lead.run_id.value());
  const bool is_proven = link.tls != nullptr;
  if (known == runs_.end() || !known->second->run.may_be_rival(lead, is_proven)) return;
  meets_rival_(net::address_text(link.from), lead.port);
}

// It holds as long as the other one repeats it on this link. Members that have lost that one take
// it for lost up to a heartbeat apart: the last of them may still say that it leads.
void Server::Impl::hand_over(Link& link, const Lead& lead) {
  const auto found = runs_.find(lead.run_id.value());
  if (found != runs_.end() && found->second->run.gathers_majority()) {
    links_.restart_idle_time(link);
    return links_.send(link, Beat{});
  }
  const Moved moved = place_of(link, lead);
  const bool is_news = elsewhere() == nullptr || elsewhere_->place != moved;
  if (is_news && options_.log) {
    options_.log->info("the run is coordinated by {}", host_and_port(moved.address, moved.port));
  }
  elsewhere_ = Elsewhere{moved, link.id, lead, link.tls != nullptr};
  links_.restart_idle_time(link);
  links_.send(link, Beat{});  // it is understood
  if (found == runs_.end() || found->second->finished_at) return;
  const std::shared_ptr<RunEntry> entry = found->second;
  links_.for_each([&](Link& other) {
    if (other.run == entry && other.state == LinkState::kAgent) send_away(other, moved);
  });
  finish_run(*entry);
  runs_.erase(found);  // if the other one is gone, a run of this name may begin here
}

// One that came over loopback is on this machine: the agent goes where it reaches this one.
void Server::Impl::send_away(Link& link, Moved moved) {
  const round::Peer peer = peer_of(link);
  const bool is_local = is_loopback_literal(moved.address);
  if (is_local && !is_loopback_literal(peer.address)) moved.address = peer.local_address;
  links_.send(link, std::move(moved));
}

// When its agents hear of it nothing listens here: those that are refused need no other proof that
// this coordinator has ended.
void Server::Impl::resign(RunEntry& entry) {
  if (options_.only_run) reactor_.close();  // else others are served here
  finish_run(entry);
  if (resigned_) resigned_();
}

}  // namespace ddprun::coordinator
