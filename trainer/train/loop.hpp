// The steps of a run in one world, from session.state to the end. Main thread. Errors:
// TrainerError; whatever a failed collective throws.
#pragma once

#include "trainer/train/session.hpp"

namespace ddprun::trainer {

/// Collective, after start() (resume.hpp).
void train(Session& session);

}  // namespace ddprun::trainer
