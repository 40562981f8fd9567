// Which run an agent comes to, or why it is refused.
#include <algorithm>
#include <utility>

#include "base/address.hpp"
#include "base/format.hpp"
#include "base/random_uuid.hpp"
#include "rendezvous/coordinator/live_runs.hpp"
#include "rendezvous/coordinator/server_impl.hpp"
#include "rendezvous/protocol/codec.hpp"
#include "rendezvous/round/admission.hpp"

namespace ddprun::coordinator {

using namespace protocol;

namespace {

/// Three quarters: one address alone, by mistake or on purpose, leaves places to the others.
std::size_t share_of_one_address(std::size_t runs) {
  return runs - runs / 4;
}

std::string not_hello(const Message& message) {
  return "the first message must be hello, not " + std::string(type_of(message));
}

/// Whether other nodes would believe this one's certificate there.
bool can_coordinate(const Link& link, const Hello& hello) {
  if (link.tls == nullptr || link.tls->has_secret()) return true;
  const std::string address = hello.address.empty() ? peer_of(link).address : hello.address;
  return is_loopback_literal(address) || link.tls->peer_names(address);
}

}  // namespace

void Server::Impl::on_message(Link& link, Message message) {
  auto* hello = std::get_if<Hello>(&message);
  const bool is_hello = hello != nullptr;
  if (is_hello) strip(link, *hello);
  if (link.run == nullptr && is_hello) return on_hello(link, std::move(message));
  const auto* lead = std::get_if<Lead>(&message);
  if (link.run == nullptr && lead != nullptr) return on_lead(link, *lead);
  const auto* probe = std::get_if<Probe>(&message);
  if (link.run == nullptr && probe != nullptr) return answer(link, *probe);
  if (link.run == nullptr) return refuse_as_malformed(link, not_hello(message));
  // Only a hello needs the address of its sender.
  round::Peer peer;
  if (is_hello) peer = peer_of(link);
  step(link.run, round::Received{round::LinkId(link.id), std::move(peer), std::move(message)});
}

void Server::Impl::answer(Link& link, const Probe& probe) {
  const auto& only = options_.only_run;
  if (only && !probe.run_id.empty() && probe.run_id != only->value()) {
    return links_.refuse(link, {RefusalCode::kWrongRun, "another run is coordinated here", {}});
  }
  const bool had_round = only && !runs_.empty() && runs_.begin()->second->run.rounds().formed();
  links_.send(link, Probe{nonce_, "", had_round});
  links_.close(link);
}

void Server::Impl::on_hello(Link& link, Message message) {
  Hello& hello = std::get<Hello>(message);
  if (send_there(link, hello)) return;
  const bool is_full = unfinished_ >= options_.limits.runs;
  if (is_full && !runs_.contains(hello.run_id.value())) forget_run_without_agents();
  auto refused = refusal_of(link, hello);
  if (!refused && links_.is_of_another_run(link, hello.run_id.value())) {
    refused = Refused{RefusalCode::kWrongRun, "this link was made for another run", {}};
  }
  if (refused) return refuse_hello(link, hello, std::move(*refused));
  std::shared_ptr<RunEntry> entry = find_run(hello);
  const bool begins = entry == nullptr;
  if (begins && !may_act()) return links_.close(link);  // it says hello again
  if (is_held_back(hello, entry.get())) {
    links_.log_once(link, "run " + hello.run_id.value() + " had a round: its nodes have " +
                              duration_text(kMembersAwaited) + " to come back before others join");
    return links_.close(link);
  }
  const bool is_over = options_.only_run && runs_begun_ > 0 && !runs_.empty();
  if (begins && (ending_ || is_over)) {
    // The agent reconnects, to the coordinator that follows this one.
    links_.log_once(link, "this coordinator's run has finished and it accepts no new runs");
    return links_.close(link);
  }
  if (!begins && is_given_up(hello, *entry)) {
    finish_run(*entry);
    runs_.erase(hello.run_id.value());
    return on_hello(link, std::move(message));
  }
  links_.end_idle_time(link);
  if (begins) entry = new_run(link, hello);
  link.run = entry;
  const round::Peer peer = peer_of(link);
  if (options_.peers)
    link.workers = Link::Workers{hello.agent, round::worker_addresses(hello, peer)};
  step(entry, round::Received{round::LinkId(link.id), peer, std::move(message)});
  if (!begins || entry->run.status(Clock::now()).counters.joins == 0) return;
  ++runs_begun_;
  ++unfinished_;
  ++founders_[entry->founder];
  runs_.insert_or_assign(entry->id.value(), entry);
}

/// Each hello, also a later one on the link: it says nothing that this process, or the certificate,
/// knows to be otherwise.
void Server::Impl::strip(const Link& link, Hello& hello) {
  hello.runs_coordinator = hello.runs_coordinator && hello.agent == options_.own_agent;
  if (hello.standby_port == 0 || can_coordinate(link, hello)) return;
  hello.standby_port = 0;
  links_.log_once(
      link, "the certificate of " + hello.host +
                " does not name its address: that node cannot coordinate the run after this one");
}

std::shared_ptr<RunEntry> Server::Impl::new_run(const Link& link, const Hello& hello) {
  const auto before = runs_.find(hello.run_id.value());
  // Each run has an author of its own: to know it shows that a node was in a round of that run.
  round::RunOptions options{hello.run_id, round::author_name(options_.seat.term, random_uuid())};
  const bool again = before != runs_.end() && !before->second->run.runs_other_command(hello);
  if (again) options.succeeded = before->second->run.success();
  if (options_.only_run) {
    options.record = options_.seat.record;
    options.term = options_.seat.term;
    options.succession = {options_.fails_over, options_.at_endpoint, options_.seat.candidate};
  }
  options.origin = random_uuid();
  if (LiveRuns* const live = options_.live_runs.get()) {
    options.author = round::author_of_lineage(live->lineage_for(hello), options.author);
    options.knows_members = live->is_member(hello);
  }
  return std::make_shared<RunEntry>(executor_, std::move(options),
                                    network_of(net::address_text(link.from)));
}

/// Whether its run had a round, before this start or until all its links broke, whose members may
/// come back: without a secret another node could take the rank of one, or end the run by terms of
/// its own.
bool Server::Impl::is_held_back(const Hello& hello, const RunEntry* entry) const {
  const TimePoint now = Clock::now();
  if (entry != nullptr && entry->run.rounds().formed()) {
    const bool is_left = !entry->finished_at && !entry->run.has_agents() && !options_.only_run;
    return is_left && now < entry->had_agents + kMembersAwaited &&
           !entry->run.rounds().is_member(hello);
  }
  return options_.live_runs != nullptr && options_.live_runs->is_held_back(hello, now);
}

/// What begins now is another run: none of its members has come back in time, or it has no round,
/// and this is a member of the one that had its name.
bool Server::Impl::is_given_up(const Hello& hello, const RunEntry& entry) const {
  if (options_.only_run || entry.finished_at || entry.run.rounds().is_member(hello)) return false;
  if (entry.run.rounds().formed()) return !entry.run.has_agents();
  return options_.live_runs != nullptr && options_.live_runs->is_member(hello);
}

std::optional<Refused> Server::Impl::refusal_of(const Link& link, const Hello& hello) const {
  if (auto refused = round::refuse_hello(hello)) return refused;
  if (options_.only_run) {
    auto refused = round::refuse_run(hello, *options_.only_run);
    if (!refused) refused = round::refuse_list(hello, options_.list_begins);
    if (!refused && options_.own) refused = round::refuse_command(hello, *options_.own);
    return refused;
  }
  const auto known = runs_.find(hello.run_id.value());
  const bool begins =
      known == runs_.end() ||
      (known->second->finished_at && known->second->run.starts_new_run(hello, Clock::now()));
  if (!begins) return std::nullopt;
  if (options_.live_runs && options_.live_runs->is_member(hello)) return std::nullopt;
  const std::string address = network_of(net::address_text(link.from));
  const auto founder = founders_.find(address);
  const std::size_t share = share_of_one_address(options_.limits.runs);
  if (founder != founders_.end() && founder->second >= share) {
    return Refused{RefusalCode::kRunFull,
                   address + " has begun " + std::to_string(founder->second) +
                       " runs of this coordinator, and one address at most " +
                       std::to_string(share) +
                       "; raise --max-runs of ddprun-rdzvd, or use another coordinator",
                   Milliseconds(0)};
  }
  if (known != runs_.end() || unfinished_ < options_.limits.runs) return std::nullopt;
  const std::string most = std::to_string(options_.limits.runs);
  return Refused{RefusalCode::kRunFull,
                 "this coordinator serves " + most + " runs, its maximum, and run " +
                     hello.run_id.value() +
                     " is not one of them; raise --max-runs of ddprun-rdzvd, or use another "
                     "coordinator",
                 Milliseconds(0)};
}

void Server::Impl::refuse_hello(Link& link, const Hello& hello, Refused refused) {
  links_.log_once(link, refused.sentence);
  const std::string& known = options_.own ? options_.own->fingerprint : hello.fingerprint;
  links_.refuse(link, round::as_told(refused, hello, known, link.tls != nullptr));
}

void Server::Impl::refuse_as_malformed(Link& link, const std::string& cause) {
  links_.log_once(link, cause);
  links_.refuse(link, {RefusalCode::kMalformed, cause, Milliseconds(0)});
}

/// Null if this agent starts a new run.
std::shared_ptr<RunEntry> Server::Impl::find_run(const Hello& hello) {
  const auto found = runs_.find(hello.run_id.value());
  if (found == runs_.end()) {
    forget_old_runs();
    return nullptr;
  }
  return found->second->run.starts_new_run(hello, Clock::now()) ? nullptr : found->second;
}

void Server::Impl::forget_old_runs() {
  const TimePoint now = Clock::now();
  auto oldest = runs_.end();
  for (auto at = runs_.begin(); at != runs_.end();) {
    const auto& finished = at->second->finished_at;
    if (finished && now - *finished >= kOverKept) {
      at = runs_.erase(at);
      continue;
    }
    const bool older =
        finished && (oldest == runs_.end() || *finished < *oldest->second->finished_at);
    if (older) oldest = at;
    ++at;
  }
  if (runs_.size() >= options_.limits.runs && oldest != runs_.end()) runs_.erase(oldest);
}

// A run that waits for its first agent to come back has no right to a place that another needs. If
// one comes back it brings what is to be known of the run, as to a restarted coordinator.
void Server::Impl::forget_run_without_agents() {
  const auto unused = std::find_if(runs_.begin(), runs_.end(), [](const auto& one) {
    const RunEntry& entry = *one.second;
    const bool is_held =
        entry.run.rounds().formed() && Clock::now() < entry.had_agents + kMembersAwaited;
    return !entry.finished_at && !entry.run.has_agents() && !is_held;
  });
  if (unused == runs_.end()) return;
  finish_run(*unused->second);
  runs_.erase(unused);
}

// With a fixed master address the workers of a round's members meet in this store, and no other
// node has any business there. A member that does not tell its addresses leaves it open to all.
void Server::Impl::admit_to_store(Link& link) {
  if (!link.workers || !link.run->run.has_member(link.workers->agent)) return;
  const auto workers = std::exchange(link.workers, std::nullopt);
  options_.peers->add(workers->addresses);
  if (workers->addresses.empty()) options_.peers->admit_every_address();
}

}  // namespace ddprun::coordinator
