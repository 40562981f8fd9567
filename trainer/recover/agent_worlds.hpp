// The rounds of ddprun --restart=failed as worlds to train on in, over worker_api. Main thread.
#pragma once

#include <memory>

#include "trainer/recover/world_source.hpp"

namespace ddprun::trainer {

/// The first one is that of the environment; of a spare, that in which it gets a place. nullptr if
/// this process cannot take a new round: under torchrun, or alone.
[[nodiscard]] std::unique_ptr<WorldSource> agent_worlds();

}  // namespace ddprun::trainer
