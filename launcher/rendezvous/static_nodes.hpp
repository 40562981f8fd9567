// The static backend: numbered nodes, a fixed address and port for the workers of every round, node
// rank 0 there. Pure but for the facts it asks the machine. No thread rule.
#pragma once

#include "launcher/rendezvous/nodes.hpp"
#include "launcher/rendezvous/plan.hpp"

namespace ddprun {

[[nodiscard]] Result<RendezvousPlan> plan_static(const RendezvousInput& input,
                                                 const NodeRange& nodes);

}  // namespace ddprun
