#include "launcher/rendezvous/static_nodes.hpp"

#include "launcher/rendezvous/endpoint.hpp"
#include "launcher/rendezvous/plan_parts.hpp"
#include "launcher/rendezvous/single_node.hpp"
#include "launcher/usage.hpp"

namespace ddprun {
namespace {

using Id = OptionId;
using Host = RendezvousConf::Host;
using Place = Whereabouts::Place;

/// The option that says where the workers meet, for sentences.
std::string shown_master(const Settings& settings) {
  return settings.shown(settings.text(Id::kRdzvEndpoint).empty() ? Id::kMasterAddr
                                                                 : Id::kRdzvEndpoint);
}

/// A scoped address, fe80::1%eth0, is left to the system.
Result<std::string> master_host(const Settings& settings) {
  const std::string& text = settings.text(Id::kMasterAddr);
  if (text.find('%') != std::string::npos) return text;
  const auto parsed = parse_endpoint(text, settings.named(Id::kMasterAddr));
  if (parsed && !parsed->port) return parsed->host;
  return usage(settings.shown(Id::kMasterAddr) + " is not a host's name or address" +
               (parsed ? ": the port goes into --master-port" : ""));
}

Result<Endpoint> master_of(const Settings& settings) {
  const std::string& text = settings.text(Id::kRdzvEndpoint);
  if (!text.empty()) {
    auto endpoint = parse_endpoint(text, settings.named(Id::kRdzvEndpoint));
    if (!endpoint || endpoint->port) return endpoint;
    return usage(
        settings.shown(Id::kRdzvEndpoint) +
        " has no port, which the static backend needs: write HOST:PORT, or use --master-addr "
        "and --master-port");
  }
  const std::int64_t port =
      settings.given(Id::kMasterPort) ? settings.integer(Id::kMasterPort) : kStaticPort;
  if (port < 0 || port > UINT16_MAX) {
    return usage(settings.shown(Id::kMasterPort) + " is not a port: it must be 0 to 65535");
  }
  auto host = master_host(settings);
  if (!host) return host.error();
  return Endpoint{*host, static_cast<std::uint16_t>(port)};
}

Result<void> check_range(const Settings& settings, const NodeRange& nodes) {
  const std::string max = std::to_string(nodes.max);
  if (nodes.min != nodes.max) {
    return usage(settings.shown(Id::kNnodes) +
                 ": the static backend never starts with fewer than all nodes; give "
                 "--rdzv-backend=c10d, or --nnodes=" +
                 max);
  }
  const std::int64_t rank = settings.integer(Id::kNodeRank);
  if (rank >= 0 && rank < nodes.max) return {};
  return usage(settings.shown(Id::kNodeRank) + ": the " + max + " nodes of " +
               settings.shown(Id::kNnodes) + " have the ranks 0 to " +
               std::to_string(nodes.max - 1));
}

/// Node rank 0 serves at the master address, so that has to be its own.
Result<void> check_place(const RendezvousInput& input, const Endpoint& master,
                         const Whereabouts& found) {
  const Settings& settings = input.settings;
  const bool serves = settings.integer(Id::kNodeRank) == 0;
  if (!serves || found.place != Place::kElsewhere || input.conf.is_host == Host::kYes) return {};
  const std::string who =
      settings.given(Id::kNodeRank) ? settings.shown(Id::kNodeRank) : "no --node-rank is given";
  return usage(who + ", so this node serves at " + shown_master(settings) + ", but " + master.host +
               " is not an address of this machine: give each node its own --node-rank, and the "
               "address of node 0 (behind a forwarded address: --rdzv-conf is_host=true)");
}

void note_fixed_ways(RendezvousPlan& plan, const RendezvousInput& input) {
  const Settings& settings = input.settings;
  const bool zero = settings.integer(Id::kNodeRank) == 0;
  const bool against = input.conf.is_host == (zero ? Host::kNo : Host::kYes);
  note_unused(plan, against ? settings.named(Id::kRdzvConf) + " is_host" : "",
              "with the static backend node rank 0 is the host");
  note_unused(plan, given_ones(settings, {Id::kLocalAddr}),
              "the static backend has a fixed address");
  const bool named = settings.given(Id::kMasterAddr) || settings.given(Id::kRdzvEndpoint);
  if (!named) {
    plan.notes.push_back("no --master-addr is given: all nodes have to run on this machine");
  }
}

Result<RendezvousPlan> over_nodes(const RendezvousInput& input, const NodeRange& nodes,
                                  const Endpoint& master) {
  const Settings& settings = input.settings;
  auto range = check_range(settings, nodes);
  if (!range) return range.error();
  if (*master.port == 0) {
    return usage(
        "with MASTER_PORT 0 the kernel picks a port that the other nodes cannot know: pass "
        "--master-port, for example " +
        std::to_string(kStaticPort));
  }
  const Whereabouts found = input.machine.locate(master.host);
  auto reachable = refuse_loopback_name(master.host, found, nodes, shown_master(settings));
  if (!reachable) return reachable.error();
  auto place = check_place(input, master, found);
  if (!place) return place.error();
  const RunId run_id(settings.text(Id::kRdzvId));
  auto told = check_names_told(run_id, settings);
  if (!told) return told.error();
  auto plan = plan_over_link(input, nodes, ConfUse::kStatic);
  if (!plan) return plan;
  plan->run_id = run_id;
  plan->store.master_addr = master.host;
  plan->store.master_port = *master.port;
  plan->store.listen_addr = named_loopback(master.host).value_or("");
  RendezvousConfig& rendezvous = *plan->rendezvous;
  rendezvous.master = MasterChoice::kFixed;
  rendezvous.coordinator = {master.host, *master.port};
  rendezvous.node_rank = static_cast<int>(settings.integer(Id::kNodeRank));
  if (*rendezvous.node_rank == 0) {
    plan->host = host_plan(HostPlan::Need::kMust, master.host, *master.port);
  }
  note_fixed_ways(*plan, input);
  return plan;
}

}  // namespace

Result<RendezvousPlan> plan_static(const RendezvousInput& input, const NodeRange& nodes) {
  auto master = master_of(input.settings);
  if (!master) return master.error();
  auto plan = nodes.max == 1 ? single_node_at(input, *master) : over_nodes(input, nodes, *master);
  if (plan && !input.settings.text(Id::kRdzvEndpoint).empty()) {
    note_unused(*plan, given_ones(input.settings, {Id::kMasterAddr, Id::kMasterPort}),
                input.settings.named(Id::kRdzvEndpoint) + " says where the nodes meet");
  }
  return plan;
}

}  // namespace ddprun
