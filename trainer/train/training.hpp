// One run of the trainer in one worker: set up, resume from the checkpoint, train, evaluate, save.
// Main thread. Errors: TrainerError, UsageError; a lost peer is a TrainerError naming rank and
// step.
#pragma once

#include "trainer/options/options.hpp"
#include "worker_api/worker.hpp"

namespace ddprun::trainer {

/// Returns when every rank has finished.
void run_training(const TrainerOptions& options, const WorkerEnvironment& world);

}  // namespace ddprun::trainer
