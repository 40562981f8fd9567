// A single node, without a coordinator: the standalone rules of torchrun, c10d and static where no
// other node is waited for. Pure but for the facts it asks the machine. No thread rule.
#pragma once

#include "launcher/rendezvous/endpoint.hpp"
#include "launcher/rendezvous/plan.hpp"

namespace ddprun {

/// A run id of its own and a port that the kernel picks.
[[nodiscard]] Result<RendezvousPlan> standalone_node(const RendezvousInput& input);

/// The run id as given, this node's own address, a port that the kernel picks.
[[nodiscard]] Result<RendezvousPlan> single_node(const RendezvousInput& input, const RunId& run_id);

/// MASTER_ADDR and MASTER_PORT as given; the address must be this machine's.
[[nodiscard]] Result<RendezvousPlan> single_node_at(const RendezvousInput& input,
                                                    const Endpoint& master);

}  // namespace ddprun
