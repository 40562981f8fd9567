#include "launcher/options/values.hpp"
#include "launcher/rendezvous/plan.hpp"

namespace ddprun {

namespace {

/// The workers of one node are all here: an address that this machine does not have is of no use to
/// them, whatever is forwarded.
void take_address(RendezvousPlan& plan, const std::string& host, const Machine& machine) {
  plan.store.listen_addr = machine.locate("localhost").literal;
  plan.store.master_addr = plan.store.listen_addr;
  if (host.empty()) return;
  const Whereabouts found = machine.locate(host);
  if (found.place == Whereabouts::Place::kHere) {
    plan.store.master_addr = host;
    plan.store.listen_addr = found.literal;
    return;
  }
  plan.notes.push_back(host +
                       " is not an address of this machine: the workers of its one node use " +
                       plan.store.master_addr);
}

}  // namespace

Result<RendezvousPlan> plan_single_node(const Request& request, const Machine& machine) {
  const RendezvousRequest& asked = request.rendezvous;
  RendezvousPlan plan;
  name_run(plan, asked.run_id, machine);
  plan.store.host = asked.store_host;
  plan.notes = conf_notes(asked.conf, ConfUse::kSingleNode);
  std::string local = asked.local_addr.value;
  if (!local.empty()) {
    auto host = parse_host(local, asked.local_addr.shown());
    if (!host) return host.error();
    local = std::move(*host);
  }
  take_address(plan, local, machine);
  return plan;
}

Result<RendezvousPlan> plan_standalone(const Request& request, const Machine& machine) {
  const RendezvousRequest& asked = request.rendezvous;
  auto plan = plan_single_node(request, machine);
  if (!plan) return plan;
  plan->run_id = RunId(machine.random_id());
  plan->run_id_is_new = true;
  if (asked.standalone.value) {
    Setting<Backend> backend = asked.backend;
    backend.given = backend.given && backend.text != "c10d";  // which it is
    note_unused(*plan,
                given_names({&backend, &asked.endpoint, &asked.run_id, &asked.master_addr,
                             &asked.master_port}),
                asked.standalone.name + " chooses a free port and a run id");
  } else {
    note_unused(*plan, given_names({&asked.run_id, &asked.master_addr}),
                "one node without --master-port runs standalone");
  }
  // A user who numbers nodes may have forgotten their count.
  note_unused(*plan, asked.node_rank.value == 0 ? "" : asked.node_rank.shown(),
              "the run has one node (--nnodes)");
  return plan;
}

Result<RendezvousPlan> plan_single_node_at(const Endpoint& master, const Request& request,
                                           const Machine& machine) {
  const RendezvousRequest& asked = request.rendezvous;
  if (asked.node_rank.value != 0) {
    return usage(asked.node_rank.shown() + ", but a run of one node has node 0 only");
  }
  RendezvousPlan plan;
  name_run(plan, asked.run_id, machine);
  plan.store.master_port = master.port.value_or(0);
  plan.notes = conf_notes(asked.conf, ConfUse::kSingleNode);
  take_address(plan, master.host, machine);
  note_unused(plan, given_names({&asked.local_addr}), "the static backend has a fixed address");
  return plan;
}

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
