// Begins training in a world: all ranks receive the state of the rank that has trained furthest; if
// all processes are new, of the rank with the newest checkpoint, or the new state of rank 0. Main
// thread. Errors: TrainerError if --resume names an unusable file, or a rank's --model-dir has only
// unusable checkpoints.
#pragma once

#include "trainer/train/session.hpp"

namespace ddprun::trainer {

/// Collective. Afterwards session.state is the position to continue from, what the step needs
/// and (on rank 0) session.reporter exist, and all ranks have been verified to hold identical bits.
void start(Session& session);

}  // namespace ddprun::trainer
