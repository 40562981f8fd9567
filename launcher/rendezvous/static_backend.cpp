#include "launcher/rendezvous/backends.hpp"
#include "launcher/rendezvous/several_nodes.hpp"
#include "launcher/usage.hpp"

namespace ddprun {
namespace {

/// The option that gives the address of the workers' store, for sentences.
std::string shown_master(const RendezvousRequest& asked) {
  return asked.endpoint.value ? asked.endpoint.shown() : asked.master_addr.shown();
}

/// A scoped address, fe80::1%eth0, is left to the system.
Result<std::string> master_host(const Setting<std::string>& master_addr) {
  const std::string& text = master_addr.value;
  if (text.find('%') != std::string::npos) return text;
  const auto parsed = parse_endpoint(text, master_addr.name);
  if (parsed && !parsed->port) return parsed->host;
  return usage(master_addr.shown() + " is not a host's name or address" +
               (parsed ? ": the port goes into --master-port" : ""));
}

Result<Endpoint> master_of(const RendezvousRequest& asked) {
  if (asked.endpoint.value) {
    if (asked.endpoint.value->port) return *asked.endpoint.value;
    return usage(
        asked.endpoint.shown() +
        " has no port, which the static backend needs: write HOST:PORT, or use --master-addr "
        "and --master-port");
  }
  const std::int64_t port = asked.master_port.value;
  if (port < 0 || port > UINT16_MAX) {
    return usage(asked.master_port.shown() + " is not a port: it must be 0 to 65535");
  }
  auto host = master_host(asked.master_addr);
  if (!host) return host.error();
  return Endpoint{*host, static_cast<std::uint16_t>(port)};
}

Result<void> check_static_rank(const RendezvousRequest& asked) {
  const NodeRange& nodes = asked.nodes.value;
  const std::string max = std::to_string(nodes.max);
  if (asked.node_rank.value >= 0 && asked.node_rank.value < nodes.max) return {};
  return no_such_rank(asked.node_rank, "the " + max + " nodes of " + asked.nodes.shown(),
                      nodes.max);
}

/// Node rank 0 serves at the master address, which therefore has to be its own.
Result<void> check_static_place(const RendezvousRequest& asked, const std::string& master,
                                Whereabouts::Place place) {
  const bool serves = asked.node_rank.value == 0;
  const bool forwarded = asked.conf.value.is_host.value_or(false);
  if (!serves || place != Whereabouts::Place::kElsewhere || forwarded) return {};
  const std::string who =
      asked.node_rank.given ? asked.node_rank.shown() : "no --node-rank is given";
  return usage(who + ", so this node serves at " + shown_master(asked) + ", but " + master +
               " is not an address of this machine: give each node its own --node-rank, and the "
               "address of node 0 (behind a forwarded address: --rdzv-conf is_host=true)");
}

void add_static_notes(RendezvousPlan& plan, const RendezvousRequest& asked) {
  const NodeRange& nodes = asked.nodes.value;
  if (nodes.min != nodes.max) {
    plan.notes.push_back(asked.nodes.shown() + ": the static backend starts with all " +
                         std::to_string(nodes.max) + " nodes; --rdzv-backend=c10d starts with " +
                         std::to_string(nodes.min));
  }
  const bool zero = asked.node_rank.value == 0;
  const bool against = asked.conf.value.is_host.value_or(zero) != zero;
  note_unused(plan, against ? asked.conf.name + " is_host" : "",
              "with the static backend node rank 0 runs the coordinator");
  note_unused(plan, given_names({&asked.local_addr}), "the static backend has a fixed address");
  if (!asked.master_addr.given && !asked.endpoint.given) {
    plan.notes.push_back("no --master-addr is given: all nodes have to run on this machine");
  }
}

Result<RendezvousPlan> plan_static_nodes(const Endpoint& master, const Request& request,
                                         const Machine& machine) {
  const RendezvousRequest& asked = request.rendezvous;
  auto rank = check_static_rank(asked);
  if (!rank) return rank.error();
  if (*master.port == 0) {
    return usage(
        "with MASTER_PORT 0 the kernel picks a port that the other nodes cannot know: pass "
        "--master-port, for example " +
        std::to_string(kStaticPort));
  }
  const Whereabouts found = machine.locate(master.host);
  auto usable = refuse_loopback_name(master.host, found, asked.nodes.value, shown_master(asked));
  if (usable) usable = check_static_place(asked, master.host, found.place);
  if (!usable) return usable.error();
  SeveralNodes several;
  several.nodes = {asked.nodes.value.max, asked.nodes.value.max};
  several.coordinator = {master.host, *master.port};
  several.master = MasterChoice::kFixed;
  several.node_rank = static_cast<int>(asked.node_rank.value);
  if (*several.node_rank == 0) several.runs_coordinator = CoordinatorPlan::Need::kMust;
  auto plan = plan_several_nodes(several, request, machine);
  if (!plan) return plan;
  if (plan->coordinator) plan->coordinator->rank_by_default = !asked.node_rank.given;
  add_static_notes(*plan, asked);
  return plan;
}

}  // namespace

Result<RendezvousPlan> plan_static(const Request& request, const Machine& machine) {
  const RendezvousRequest& asked = request.rendezvous;
  auto master = master_of(asked);
  if (!master) return master.error();
  auto plan = asked.nodes.value.max == 1
                  ? plan_single_node_at(*master, shown_master(asked), request, machine)
                  : plan_static_nodes(*master, request, machine);
  if (plan && asked.endpoint.value) {
    note_unused(*plan, given_names({&asked.master_addr, &asked.master_port}),
                asked.endpoint.name + " gives the address of the rendezvous");
  }
  return plan;
}

}  // namespace ddprun
