// RendezvousPlan: how the nodes of a run form it and where its workers find their store, by node
// count, backend, endpoint, run id and the standalone rules of torchrun. Pure except for the facts
// that it queries from the machine.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "agent/config/launch_config.hpp"
#include "base/result.hpp"
#include "launcher/machine/machine.hpp"
#include "launcher/request/request.hpp"

namespace ddprun {

/// This node may, or must, run the coordinator.
struct CoordinatorPlan {
  enum class Need { kMay, kMust };  // kMay: the process that binds the port first runs it
  Need need = Need::kMay;
  std::string bind;  // an address literal; empty: the wildcard address, v4 and v6
  std::uint16_t port = 0;
  bool rank_by_default = false;  // it is here because no --node-rank was given
};

struct RendezvousPlan {
  RunId run_id;
  StoreConfig store;
  std::optional<RendezvousConfig> rendezvous;  // unset: a single node
  std::optional<CoordinatorPlan> coordinator;  // only with rendezvous
  std::vector<std::string> notes;              // what was given and is unused in this mode
  std::vector<std::string> warnings;           // what was given and is unknown
  std::vector<std::string> hosts;              // all nodes in their order, where they are known
  bool run_id_is_new = false;                  // chosen at this start, not given
  bool coordinator_is_open = false;            // a dry run cannot know its address
};

[[nodiscard]] Result<RendezvousPlan> plan_rendezvous(const Request& request,
                                                     const Machine& machine);

// The ways in which the nodes of a run find each other, each with a plan. Pure except for the facts
// that they query from the machine.

/// Rendezvous at an endpoint, elastic from MIN to MAX. One node at its own endpoint is a single
/// node, without a coordinator.
[[nodiscard]] Result<RendezvousPlan> plan_c10d(const Request& request, const Machine& machine);

/// Elastic as well, with a coordinator that is elected in etcd.
[[nodiscard]] Result<RendezvousPlan> plan_etcd(const Request& request, const Machine& machine);
/// From the file of --rdzv-conf password_file, if there is one.
[[nodiscard]] Result<void> read_etcd_password(LaunchConfig& config);

/// Numbered nodes, a fixed address and port for the workers of every round, node rank 0 there.
[[nodiscard]] Result<RendezvousPlan> plan_static(const Request& request, const Machine& machine);

/// --hosts: the same list on every node, in which each finds its own position. --node-rank gives it
/// where addresses cannot.
[[nodiscard]] Result<RendezvousPlan> plan_hosts_option(const Request& request,
                                                       const Machine& machine);

/// c10d over a list; no address is looked up. A list of one host is a single node, without a
/// coordinator.
[[nodiscard]] Result<RendezvousPlan> plan_host_list(const HostList& list, const Request& request,
                                                    const Machine& machine);

/// torchrun's standalone: a unique run id and a port that the kernel picks.
[[nodiscard]] Result<RendezvousPlan> plan_standalone(const Request& request,
                                                     const Machine& machine);

/// A single node with the given run id, its own address and a port that the kernel picks.
[[nodiscard]] Result<RendezvousPlan> plan_single_node(const Request& request,
                                                      const Machine& machine);

// What the plans of several nodes have in common: c10d, static and a list of hosts differ in how
// they find the coordinator and number the nodes. Pure except for the facts that it queries from
// the machine.

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
