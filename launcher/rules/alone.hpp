// One node without a coordinator: the standalone rules of torchrun, c10d and static with nobody to
// wait for. Pure but for the facts it asks the machine. No thread rule.
#pragma once

#include "launcher/rules/endpoint.hpp"
#include "launcher/rules/meeting.hpp"

namespace ddprun {

/// A run id of its own and a port that the kernel picks.
[[nodiscard]] Result<Meeting> meet_standalone(const MeetingInput& input);

/// The run id as given, this node's own address, a port that the kernel picks.
[[nodiscard]] Result<Meeting> meet_nobody(const MeetingInput& input, const RunId& run_id);

/// MASTER_ADDR and MASTER_PORT as given; the address must be this machine's.
[[nodiscard]] Result<Meeting> meet_nobody_at(const MeetingInput& input, const Endpoint& master);

}  // namespace ddprun
