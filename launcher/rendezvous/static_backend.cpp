#include "launcher/options/values.hpp"
#include "launcher/rendezvous/backends.hpp"
#include "launcher/rendezvous/several_nodes.hpp"

namespace ddprun {
namespace {

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
  auto host = parse_host(asked.master_addr.value, asked.master_addr.shown(), "--master-port");
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
  SeveralNodes several;
  several.nodes = {asked.nodes.value.max, asked.nodes.value.max};
  several.coordinator = {master.host, *master.port};
  several.master = MasterChoice::kFixed;
  several.node_rank = static_cast<int>(asked.node_rank.value);
  if (*several.node_rank == 0) {
    several.runs_coordinator = CoordinatorPlan::Need::kMust;
    several.own_by_loopback = machine.locate(master.host).place != Whereabouts::Place::kHere;
  }
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
  auto plan = asked.nodes.value.max == 1 ? plan_single_node_at(*master, request, machine)
                                         : plan_static_nodes(*master, request, machine);
  if (plan && asked.endpoint.value) {
    note_unused(*plan, given_names({&asked.master_addr, &asked.master_port}),
                asked.endpoint.name + " gives the address of the rendezvous");
  }
  return plan;
}

}  // namespace ddprun
