// Starts or resumes a run: all ranks receive rank 0's state, which is new or loaded from a
// checkpoint. Main thread. Errors: TrainerError if --resume names an unusable file.
#pragma once

#include "trainer/train/session.hpp"

namespace ddprun::trainer {

/// Collective. Afterwards session.state is the position to continue from, session.parallel and (on
/// rank 0) session.reporter exist, and all ranks have been verified to hold identical bits.
void start(Session& session);

}  // namespace ddprun::trainer
