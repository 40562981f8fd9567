// The c10d backend: rendezvous at an endpoint, elastic from MIN to MAX. Pure but for the facts it
// asks the machine. No thread rule.
#pragma once

#include "launcher/rendezvous/nodes.hpp"
#include "launcher/rendezvous/plan.hpp"

namespace ddprun {

/// One node at its own endpoint is a single node, without a coordinator.
[[nodiscard]] Result<RendezvousPlan> plan_c10d(const RendezvousInput& input,
                                               const NodeRange& nodes);

}  // namespace ddprun
