// What the plans of several nodes have in common: c10d, static and a list of hosts differ in how
// they find the coordinator and number the nodes. Pure except for the facts that it queries from
// the machine.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "launcher/rendezvous/plan.hpp"

namespace ddprun {

struct SeveralNodes {
  NodeRange nodes;
  CoordinatorAddress coordinator;
  std::vector<CoordinatorAddress> hosts{};     // of a list, all; `coordinator` is the first
  std::optional<EtcdConfig> etcd{};            // it says where the coordinator is
  MasterChoice master = MasterChoice::kRound;  // kFixed: at the coordinator's address
  std::optional<int> node_rank;
  std::optional<int> scheduler_index;
  std::optional<CoordinatorPlan::Need> runs_coordinator;  // this node; unset: it does not
  // It reaches its own coordinator whatever its name resolves to, and whether or not it does.
  bool own_by_loopback = false;
};

/// The node listens on the wildcard address, or on that of --local-addr if it has that; its
/// coordinator as well, if agents are given that one address.
[[nodiscard]] Result<RendezvousPlan> plan_several_nodes(const SeveralNodes& several,
                                                        const Request& request,
                                                        const Machine& machine);

/// The error of port 0 in an endpoint. `shown` is the option with its value.
[[nodiscard]] Error port_of_kernel(const std::string& shown);

/// The error of a --node-rank of none of the `count` nodes; `nodes` is "the 2 nodes of --nnodes=2".
[[nodiscard]] Error no_such_rank(const Origin& rank, const std::string& nodes, int count);

/// As given; an empty --rdzv-id, whose variable was unset in the shell, is a new one, as under
/// torchrun.
void name_run(RendezvousPlan& plan, const Setting<std::string>& run_id, const Machine& machine);

/// A note that `names` are not used, unless that is empty.
void note_unused(RendezvousPlan& plan, const std::string& names, const std::string& why);

}  // namespace ddprun
