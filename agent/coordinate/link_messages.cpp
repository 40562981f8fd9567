#include "agent/coordinate/link_messages.hpp"

#include <algorithm>
#include <chrono>

#include "base/address.hpp"
#include "base/limits.hpp"
#include "base/program_name.hpp"

namespace ddprun {

namespace {

protocol::Milliseconds to_ms(Duration duration) {
  return std::chrono::duration_cast<protocol::Milliseconds>(duration);
}

// In process there is nothing to listen for; the timers that this sets never expire.
constexpr protocol::Milliseconds kNever = std::chrono::hours(24 * 365 * 10);

protocol::Terms terms_of(const LaunchConfig& config) {
  protocol::Terms terms;
  terms.max_restarts = config.stopping.max_restarts;
  if (config.stopping.min_uptime) {
    terms.min_uptime = std::min(to_ms(*config.stopping.min_uptime), kDurationMax);
  }
  if (config.stopping.hang_timeout) {
    terms.hang_timeout = std::min(to_ms(*config.stopping.hang_timeout), kDurationMax);
  }
  if (!config.rendezvous) {
    terms.keep_alive_interval = kNever;
    terms.keep_alive_max_attempt = 1;
    return terms;
  }
  const RendezvousConfig& rendezvous = *config.rendezvous;
  terms.nodes_min = rendezvous.nodes_min;
  terms.nodes_max = rendezvous.nodes_max;
  terms.join_timeout = to_ms(rendezvous.join_timeout);
  terms.last_call_timeout = to_ms(rendezvous.last_call_timeout);
  terms.keep_alive_interval = to_ms(rendezvous.keep_alive_interval);
  terms.keep_alive_max_attempt = rendezvous.keep_alive_max_attempt;
  terms.commands_may_differ = config.workers.commands_may_differ;
  terms.is_named = rendezvous.run_is_named;
  terms.program = config.workers.identity.program;
  terms.list_begins = rendezvous.list_begins;
  return terms;
}

}  // namespace

std::string to_text(const CoordinatorAddress& address) {
  return host_and_port(address.host, address.port);
}

std::string coordinator_text(const RendezvousConfig& rendezvous) {
  if (rendezvous.etcd) return rendezvous.etcd->text;
  const CoordinatorAddress& where = rendezvous.coordinator;
  const std::string& given = rendezvous.given_host;
  return host_and_port(given.empty() ? where.host : given, where.port);
}

std::string command_key(const WorkerConfig& workers) {
  return workers.commands_may_differ ? "" : workers.identity.fingerprint;
}

client::MembershipOptions membership_options(const LaunchConfig& config,
                                             const AgentIdentity& identity) {
  client::MembershipOptions options;
  protocol::Hello& hello = options.hello;
  hello.run_id = config.run_id;
  hello.agent = identity.id;
  hello.host = identity.hostname.empty() ? "unknown" : identity.hostname;
  hello.local_world_size = config.workers.count;
  hello.role = config.workers.role.empty() ? "default" : config.workers.role;
  hello.terms = terms_of(config);
  hello.fingerprint = config.workers.identity.fingerprint;
  hello.command = config.workers.identity.text;
  hello.stop_timeout = to_ms(config.stopping.shutdown_timeout);
  hello.version = kVersion;
  options.failure_grace = config.stopping.failure_grace;
  options.keeps_survivors = config.stopping.rejoin_timeout.has_value();
  hello.runs_coordinator = identity.coordinator == AgentIdentity::Coordinator::kHere;
  if (!config.rendezvous) return options;
  const RendezvousConfig& rendezvous = *config.rendezvous;
  options.coordinator = (rendezvous.etcd ? "of " : "") + coordinator_text(rendezvous);
  options.coordinator_timeout = rendezvous.coordinator_timeout;
  for (std::size_t i = 1; rendezvous.fails_over && i < rendezvous.hosts.size(); ++i) {
    const CoordinatorAddress& one = rendezvous.hosts[i];
    const bool is_here = rendezvous.node_rank == static_cast<int>(i);
    if (!is_here) options.hosts.push_back({one.host, one.host, one.port});
  }
  // A store that listens on one address alone is found there, whichever way the link took.
  hello.address = rendezvous.address;
  hello.addresses = identity.addresses;
  hello.node_rank = rendezvous.node_rank;
  options.rank_decides = rendezvous.master == MasterChoice::kFixed;
  hello.scheduler_index = rendezvous.scheduler_index;
  return options;
}

RoundFacts facts_of(const protocol::StartRound& round, const LaunchConfig& config) {
  RoundFacts facts;
  facts.round = round.stamp.number;
  facts.restarts = round.restarts;
  facts.world = round.world_size;
  facts.groups = round.group_size;
  facts.role_world = WorldSize(round.role_world_size);
  facts.group_rank = round.group_rank;
  facts.first_rank = round.rank_base;
  facts.first_role_rank = round.role_rank_base;
  facts.may_be_last = round.may_be_last;
  const bool fixed = config.rendezvous && config.rendezvous->master == MasterChoice::kFixed;
  const bool given = fixed || !config.rendezvous;  // a single node gets the address as given
  facts.master_addr = given ? config.store.master_addr : round.master_address;
  facts.master_port = fixed ? config.store.master_port : round.master_port;
  return facts;
}

const std::optional<Wait>& RendezvousWait::after(const client::Event& event, bool joined,
                                                 TimePoint now) {
  if (std::holds_alternative<client::LinkDown>(event)) wait_for_coordinator(joined, now);
  if (const auto* incoming = std::get_if<client::Incoming>(&event)) {
    const auto* waiting = std::get_if<protocol::Waiting>(&incoming->message);
    if (waiting != nullptr) wait_for_nodes(*waiting, now);
  }
  return wait_;
}

void RendezvousWait::end() {
  wait_.reset();
  nodes_since_.reset();
}

// The limits are those of client::Membership.
void RendezvousWait::wait_for_coordinator(bool joined, TimePoint now) {
  if (wait_ && std::holds_alternative<CoordinatorWait>(*wait_)) return;
  const TimePoint since = joined ? now : start_;
  const Duration limit = joined ? config_.coordinator_timeout : config_.join_timeout;
  wait_ = CoordinatorWait{to_text(config_.coordinator), since, since + limit};
}

void RendezvousWait::wait_for_nodes(const protocol::Waiting& waiting, TimePoint now) {
  if (!nodes_since_) nodes_since_ = now;
  NodesWait wait{waiting.here, waiting.nodes_min, waiting.nodes_max, *nodes_since_};
  if (waiting.left.count() > 0) wait.until = now + waiting.left;
  const bool starts = waiting.then == protocol::WaitEnd::kRoundStarts;
  wait_ = wait;
  // Enough have joined, and the message that says when the round starts is still to come.
  if (wait.here >= wait.min && wait.until && !starts) wait_.reset();
}

}  // namespace ddprun
