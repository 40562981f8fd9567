// Mean cross entropy (as torch.nn.functional.cross_entropy, natural logarithm) and top-k accuracy
// as fractions. Evaluates the whole test set, every image exactly once, split across ranks without
// padding. Main thread.
#pragma once

#include "trainer/train/session.hpp"

namespace ddprun::trainer {

/// Collective: broadcasts rank 0's batch-norm statistics and returns the means over the whole test
/// set.
[[nodiscard]] Means evaluate(Session& session);

}  // namespace ddprun::trainer
