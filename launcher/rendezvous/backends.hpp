// The ways in which the nodes of a run find each other, each with a plan. Pure except for the facts
// that they query from the machine.
#pragma once

#include "launcher/rendezvous/plan.hpp"

namespace ddprun {

/// Rendezvous at an endpoint, elastic from MIN to MAX. One node at its own endpoint is a single
/// node, without a coordinator.
[[nodiscard]] Result<RendezvousPlan> plan_c10d(const Request& request, const Machine& machine);

/// Elastic as well, with a coordinator that is elected in etcd.
[[nodiscard]] Result<RendezvousPlan> plan_etcd(const Request& request, const Machine& machine);
/// From the file of --rdzv-conf password_file, if there is one.
[[nodiscard]] Result<void> read_etcd_password(LaunchConfig& config);

/// --rdzv-conf store_type=file: where the nodes that name one file find each other, as the first of
/// them has written there. Without a port in a dry run before any has.
[[nodiscard]] Result<Endpoint> endpoint_in_file(const RendezvousRequest& asked,
                                                const Machine& machine);

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

/// A single node with MASTER_ADDR and MASTER_PORT as given, if that is an address of this machine.
[[nodiscard]] Result<RendezvousPlan> plan_single_node_at(const Endpoint& master,
                                                         const Request& request,
                                                         const Machine& machine);

}  // namespace ddprun
