#include "launcher/rendezvous/single_node.hpp"

#include "launcher/rendezvous/plan_parts.hpp"

namespace ddprun {
namespace {

using Id = OptionId;

constexpr const char* kLoopback = "127.0.0.1";

/// Somebody who numbers nodes may have forgotten to say how many there are.
void note_second_node(RendezvousPlan& plan, const Settings& settings) {
  if (settings.integer(Id::kNodeRank) == 0) return;
  note_unused(plan, settings.shown(Id::kNodeRank), "the run has one node (--nnodes)");
}

}  // namespace

Result<RendezvousPlan> single_node(const RendezvousInput& input, const RunId& run_id) {
  const Settings& settings = input.settings;
  RendezvousPlan plan;
  plan.run_id = run_id;
  plan.store.master_addr = settings.text(Id::kLocalAddr);
  if (plan.store.master_addr.empty()) plan.store.master_addr = kLoopback;
  plan.store.host = shared_store(input.machine);
  auto literal = input.machine.own_address(plan.store.master_addr);
  if (!literal) {
    return Error{ErrorKind::kUsage,
                 settings.shown(Id::kLocalAddr) + ": " + literal.error().sentence};
  }
  plan.store.listen_addr = *literal;
  plan.notes = conf_notes(input.conf, ConfUse::kSingleNode, settings);
  return plan;
}

Result<RendezvousPlan> standalone_node(const RendezvousInput& input) {
  const Settings& settings = input.settings;
  auto plan = single_node(input, RunId(input.machine.random_id()));
  if (!plan) return plan;
  if (settings.on(Id::kStandalone)) {
    const std::string names =
        given_ones(settings, {Id::kRdzvEndpoint, Id::kRdzvId, Id::kMasterAddr, Id::kMasterPort});
    note_unused(*plan, names,
                settings.named(Id::kStandalone) + " chooses a free port and a run id");
  } else {
    note_unused(*plan, given_ones(settings, {Id::kRdzvId, Id::kMasterAddr}),
                "one node without --master-port runs standalone");
  }
  note_second_node(*plan, settings);
  return plan;
}

Result<RendezvousPlan> single_node_at(const RendezvousInput& input, const Endpoint& master) {
  const Settings& settings = input.settings;
  if (settings.integer(Id::kNodeRank) != 0) {
    return Error{ErrorKind::kUsage,
                 settings.shown(Id::kNodeRank) + ", but a run of one node has node 0 only"};
  }
  auto own = input.machine.own_address(master.host);
  if (!own) {
    return Error{ErrorKind::kUsage, "MASTER_ADDR " + master.host + ": " + own.error().sentence};
  }
  RendezvousPlan plan;
  plan.run_id = RunId(settings.text(Id::kRdzvId));
  plan.store.master_addr = master.host;
  plan.store.listen_addr = *own;
  plan.store.master_port = master.port.value_or(0);
  plan.notes = conf_notes(input.conf, ConfUse::kSingleNode, settings);
  note_unused(plan, given_ones(settings, {Id::kLocalAddr}),
              "the static backend has a fixed address");
  return plan;
}

}  // namespace ddprun
