// One run of the trainer in one worker: set up, resume from the checkpoint, train, evaluate, save.
// With a WorldSource the loss of another rank does not end the process: it leaves the group, waits
// for the next world, takes the state of the rank that is ahead (recover/agreement.hpp) and trains
// on. Main thread. Errors: TrainerError, UsageError; without a WorldSource a lost peer is a
// TrainerError naming rank and step.
#pragma once

#include <optional>

#include "trainer/options/options.hpp"
#include "trainer/recover/world_source.hpp"
#include "worker_api/worker.hpp"

namespace ddprun::trainer {

/// Returns when every rank has finished. `world`: the first one; nullopt: that of a spare, which
/// waits for a place with everything loaded, and ends without training when there is no run any
/// more.
void run_training(const TrainerOptions& options, std::optional<WorkerEnvironment> world,
                  WorldSource* worlds = nullptr, const MomentWatch& watch = {});

}  // namespace ddprun::trainer
