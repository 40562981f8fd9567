// The whole test set, every picture exactly once, split over the ranks without padding. Main
// thread.
#pragma once

#include "trainer/train/session.hpp"

namespace ddprun::trainer {

/// Collective: gives all ranks rank 0's batch-norm statistics, then the means over the whole test
/// set.
[[nodiscard]] Means evaluate(Session& session);

}  // namespace ddprun::trainer
