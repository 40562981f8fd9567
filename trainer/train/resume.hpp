// The start of a run: all ranks take over rank 0's state, which is fresh or comes from a
// checkpoint. Main thread. Errors: TrainerError when --resume names a file that cannot be used.
#pragma once

#include "trainer/train/session.hpp"

namespace ddprun::trainer {

/// Collective. Afterwards session.state says where to go on, session.parallel and (on rank 0)
/// session.reporter exist, and all ranks hold the same bits, which is checked.
void start(Session& session);

}  // namespace ddprun::trainer
