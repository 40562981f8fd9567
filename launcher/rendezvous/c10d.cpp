#include "launcher/rendezvous/c10d.hpp"

#include "launcher/rendezvous/endpoint.hpp"
#include "launcher/rendezvous/plan_parts.hpp"
#include "launcher/rendezvous/single_node.hpp"

namespace ddprun {
namespace {

using Id = OptionId;
using Host = RendezvousConf::Host;
using Place = Whereabouts::Place;

constexpr const char* kOwnHost = "127.0.0.1";

Result<Endpoint> endpoint_of(const Settings& settings) {
  const std::string& text = settings.text(Id::kRdzvEndpoint);
  if (text.empty()) return Endpoint{"localhost", kElasticPort};
  auto endpoint = parse_endpoint(text, settings.named(Id::kRdzvEndpoint));
  if (endpoint && !endpoint->port) endpoint->port = kElasticPort;
  return endpoint;
}

Result<RendezvousPlan> alone(const RendezvousInput& input) {
  const Settings& settings = input.settings;
  auto plan = single_node(input, RunId(settings.text(Id::kRdzvId)));
  if (!plan) return plan;
  note_unused(*plan, given_ones(settings, {Id::kMasterAddr, Id::kMasterPort}),
              "they belong to the static backend");
  const std::string& text = settings.text(Id::kRdzvEndpoint);
  if (text.empty()) return plan;
  const auto endpoint = parse_endpoint(text, settings.named(Id::kRdzvEndpoint));
  if (endpoint && endpoint->port.value_or(0) != 0) {
    note_unused(*plan, settings.shown(Id::kRdzvEndpoint),
                "one node has nobody to wait for there; with --rdzv-conf is_host=false it meets "
                "at the ddprun-rdzvd that runs there");
  }
  return plan;
}

/// Whether this node may or must run the coordinator. It also may if its own name is the
/// endpoint's, and does not resolve yet.
std::optional<HostPlan::Need> need_of(const RendezvousInput& input, const std::string& host,
                                      Place place) {
  const Host given = input.conf.is_host;
  if (given == Host::kYes) return HostPlan::Need::kMust;
  if (given == Host::kNo) return std::nullopt;
  const bool named = place == Place::kUnknown && !is_address_literal(host) &&
                     same_host_name(host, input.machine.host_name());
  return place == Place::kHere || named ? std::optional(HostPlan::Need::kMay) : std::nullopt;
}

Result<void> check_endpoint(const Endpoint& endpoint, const std::string& shown, Host is_host) {
  if (is_wildcard_address(endpoint.host) && is_host != Host::kYes) {
    return Error{ErrorKind::kUsage, shown + ": " + endpoint.host +
                                        " is not an address other nodes can reach; use the "
                                        "address of the node that runs the rendezvous"};
  }
  if (*endpoint.port != 0) return {};
  return Error{ErrorKind::kUsage,
               shown +
                   ": port 0 lets the kernel choose, and other nodes would not know "
                   "it; pass one, " +
                   std::to_string(kElasticPort) + " for example"};
}

/// --node-rank orders the first round; one that no place has belongs to a spare.
Result<void> take_node_rank(RendezvousPlan& plan, const Settings& settings,
                            const NodeRange& nodes) {
  if (!settings.given(Id::kNodeRank)) return {};
  const std::int64_t rank = settings.integer(Id::kNodeRank);
  if (rank < 0) {
    return Error{ErrorKind::kUsage, settings.shown(Id::kNodeRank) + " is not a node's number"};
  }
  if (rank < nodes.max) {
    plan.rendezvous->node_rank = static_cast<int>(rank);
  } else {
    note_unused(plan, settings.shown(Id::kNodeRank),
                "the run has " + text_of(nodes) + ", so this node may become a spare");
  }
  return {};
}

Result<RendezvousPlan> through_link(const RendezvousInput& input, const NodeRange& nodes,
                                    const Endpoint& endpoint, const Whereabouts& found) {
  const Settings& settings = input.settings;
  auto plan = plan_over_link(input, nodes, ConfUse::kElastic);
  if (!plan) return plan;
  plan->run_id = RunId(settings.text(Id::kRdzvId));
  plan->rendezvous->coordinator = {endpoint.host, *endpoint.port};
  auto numbered = take_node_rank(*plan, settings, nodes);
  if (!numbered) return numbered.error();
  const auto need = need_of(input, endpoint.host, found.place);
  if (need) plan->host = host_plan(*need, endpoint.host, *endpoint.port);
  // The host need not wait until its own name is known to itself.
  const bool unnamed = need && found.place == Place::kUnknown;
  if (unnamed) plan->rendezvous->coordinator.host = kOwnHost;
  // Then all nodes are on this machine, and their stores are nobody else's business.
  const auto loopback = named_loopback(endpoint.host);
  if (plan->store.listen_addr.empty() && loopback) plan->store.listen_addr = *loopback;
  if (settings.text(Id::kRdzvEndpoint).empty()) {
    plan->notes.push_back("no --rdzv-endpoint is given: the " + text_of(nodes) +
                          " meet at localhost:" + std::to_string(kElasticPort) +
                          ", so all of them have to run on this machine");
  }
  note_unused(*plan, given_ones(settings, {Id::kMasterAddr, Id::kMasterPort}),
              "they belong to the static backend");
  return plan;
}

}  // namespace

Result<RendezvousPlan> plan_c10d(const RendezvousInput& input, const NodeRange& nodes) {
  const Settings& settings = input.settings;
  auto endpoint = endpoint_of(settings);
  if (!endpoint) return endpoint.error();
  const Whereabouts found = input.machine.locate(endpoint->host);
  const bool own = found.place == Place::kHere && input.conf.is_host != Host::kNo;
  if (nodes.max == 1 && own) return alone(input);
  const std::string shown = settings.shown(Id::kRdzvEndpoint);
  auto reachable = refuse_loopback_name(endpoint->host, found, nodes, shown);
  if (!reachable) return reachable.error();
  auto usable = check_endpoint(*endpoint, shown, input.conf.is_host);
  if (!usable) return usable.error();
  auto told = check_names_told(RunId(settings.text(Id::kRdzvId)), settings);
  if (!told) return told.error();
  return through_link(input, nodes, *endpoint, found);
}

}  // namespace ddprun
