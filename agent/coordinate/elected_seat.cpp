#include "agent/coordinate/elected_seat.hpp"

#include <algorithm>
#include <functional>
#include <utility>

#include "rendezvous/round/admission.hpp"

namespace ddprun {

namespace {

const EtcdConfig& etcd_of(const LaunchConfig& config) {
  return *config.rendezvous->etcd;
}

// Of many agents few need to ask before they hear who was faster.
Duration jitter_of(const AgentId& agent) {
  return std::chrono::milliseconds(std::hash<std::string>{}(agent.value()) % 100);
}

etcd::ElectorOptions options_of(const LaunchConfig& config, const protocol::Hello& hello) {
  const AgentId& agent = hello.agent;
  const EtcdConfig& etcd = etcd_of(config);
  const RendezvousConfig& rendezvous = *config.rendezvous;
  etcd::ElectorOptions options;
  for (const CoordinatorAddress& address : etcd.endpoints) {
    options.client.endpoints.push_back({address.host, address.port});
  }
  options.client.user = etcd.user;
  options.client.password = etcd.password;
  if (etcd.tls) {  // run_agent() has made sure that it can be used
    options.client.tls = net::TlsContext::make_client(*etcd.tls).value();
  }
  options.client.first = std::hash<std::string>{}(agent.value()) >> 9;
  options.election.agent = agent.value();
  options.election.may_lead = etcd.may_lead;
  // As long as an agent that is silent is waited for.
  options.election.ttl = rendezvous.keep_alive_interval * rendezvous.keep_alive_max_attempt;
  options.election.jitter = jitter_of(agent);
  options.election.cut_off_max = rendezvous.coordinator_timeout;
  options.election.where = etcd.text;
  options.election.bars = [hello](const RunRecord& record) -> std::optional<std::string> {
    const auto refused = round::refuse_record(hello, record);
    if (!refused) return std::nullopt;
    return refused->sentence;
  };
  options.keys = etcd::keys_of(etcd.prefix, config.run_id.value());
  return options;
}

}  // namespace

ElectedSeat::ElectedSeat(boost::asio::any_io_executor executor, const LaunchConfig& config,
                         const protocol::Hello& hello, OpenCoordinator open, SeatUser& user)
    : config_(config),
      user_(user),
      port_(executor, std::move(open)),
      elector_(executor, options_of(config, hello), *this) {}

// Where the link to etcd leaves this node other nodes can reach it, too.
Result<etcd::Leader> ElectedSeat::offer(const std::string& own_address) {
  const std::string& given = config_.rendezvous->address;
  const std::string& address = given.empty() ? own_address : given;
  const auto port = port_.reserve(config_.store.listen_addr);
  if (!port) return port.error();
  offered_ = {address, *port};
  return etcd::Leader{"", address, *port};
}

void ElectedSeat::lead(etcd::Revision term, const RunRecord& record) {
  coordinator::SeatTerms terms{record,
                               [this](const RunRecord& changed) { elector_.set_record(changed); },
                               [this] { return elector_.may_act(); }};
  terms.term = term;
  terms.keeper = etcd_of(config_).text;
  terms.keeper_timeout = config_.rendezvous->coordinator_timeout;
  const auto opened = port_.open(std::move(terms));
  if (!opened) return refuse(opened.error().sentence);
  user_.coordinator_at(offered_, true, "");
}

void ElectedSeat::act() {
  if (port_.coordinator() != nullptr) port_.coordinator()->resume();
}

void ElectedSeat::recorded(const RunRecord& record) {
  if (port_.coordinator() != nullptr) port_.coordinator()->recorded(record);
}

void ElectedSeat::await_etcd() {
  user_.feed(client::CoordinatorAwaited{etcd_of(config_).text});
}

void ElectedSeat::step_down() {
  port_.close();
  user_.coordinator_at(std::nullopt, false, "this node coordinates no more");
}

void ElectedSeat::follow(const std::optional<etcd::Leader>& leader) {
  const bool known = leader && !leader->host.empty() && leader->port != 0;
  if (!known) {
    return user_.coordinator_at(std::nullopt, false, "no node is elected");
  }
  user_.coordinator_at(CoordinatorAddress{leader->host, leader->port}, false, "");
}

}  // namespace ddprun
