#include "launcher/options/values.hpp"
#include "launcher/rendezvous/backends.hpp"
#include "launcher/rendezvous/several_nodes.hpp"

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

}  // namespace ddprun
