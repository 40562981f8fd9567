#include "launcher/rendezvous/backends.hpp"
#include "launcher/rendezvous/several_nodes.hpp"
#include "launcher/usage.hpp"

namespace ddprun {

Result<RendezvousPlan> plan_single_node(const Request& request, const Machine& machine) {
  const RendezvousRequest& asked = request.rendezvous;
  RendezvousPlan plan;
  name_run(plan, asked.run_id, machine);
  plan.store.master_addr = asked.local_addr.value.empty() ? kLoopbackV4 : asked.local_addr.value;
  plan.store.host = asked.store_host;
  auto literal = machine.own_address(plan.store.master_addr);
  if (!literal) return usage(asked.local_addr.shown() + ": " + literal.error().sentence);
  plan.store.listen_addr = *literal;
  plan.notes = conf_notes(asked.conf, ConfUse::kSingleNode);
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

Result<RendezvousPlan> plan_single_node_at(const Endpoint& master, const std::string& shown,
                                           const Request& request, const Machine& machine) {
  const RendezvousRequest& asked = request.rendezvous;
  if (asked.node_rank.value != 0) {
    return usage(asked.node_rank.shown() + ", but a run of one node has node 0 only");
  }
  auto own = machine.own_address(master.host);
  if (!own) {
    return usage(shown + ": " + own.error().sentence +
                 "; pass an address of this machine, or omit it");
  }
  RendezvousPlan plan;
  name_run(plan, asked.run_id, machine);
  plan.store.master_addr = master.host;
  plan.store.listen_addr = *own;
  plan.store.master_port = master.port.value_or(0);
  plan.notes = conf_notes(asked.conf, ConfUse::kSingleNode);
  note_unused(plan, given_names({&asked.local_addr}), "the static backend has a fixed address");
  return plan;
}

}  // namespace ddprun
