// The static backend: numbered nodes, a fixed address and port for the workers of every round, node
// rank 0 there. Pure but for the facts it asks the machine. No thread rule.
#pragma once

#include "launcher/rules/meeting.hpp"
#include "launcher/rules/nodes.hpp"

namespace ddprun {

[[nodiscard]] Result<Meeting> meet_by_static(const MeetingInput& input, const NodeRange& nodes);

}  // namespace ddprun
