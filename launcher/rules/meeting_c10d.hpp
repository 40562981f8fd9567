// The c10d backend: nodes meet at an endpoint, elastic from MIN to MAX. Pure but for the facts it
// asks the machine. No thread rule.
#pragma once

#include "launcher/rules/meeting.hpp"
#include "launcher/rules/nodes.hpp"

namespace ddprun {

/// One node at its own endpoint is alone, without a coordinator.
[[nodiscard]] Result<Meeting> meet_by_c10d(const MeetingInput& input, const NodeRange& nodes);

}  // namespace ddprun
