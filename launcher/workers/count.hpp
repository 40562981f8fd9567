// How many workers this node runs, and what follows from the number. Pure but for the facts it asks
// the machine. No thread rule.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "launcher/machine.hpp"
#include "launcher/options/settings.hpp"

namespace ddprun {

/// --nproc-per-node: 1..kWorkersPerNodeMax.
[[nodiscard]] Result<int> count_workers(const Settings& settings, const Machine& machine);

/// OMP_NUM_THREADS for workers that share this node's CPUs; nothing where the user set it, or where
/// one worker has the machine to itself. torchrun says 1 whatever the machine.
[[nodiscard]] std::optional<int> choose_threads(int workers, const Machine& machine);

/// --virtual-local-rank: the device of each local rank; empty without it.
[[nodiscard]] Result<std::vector<std::string>> virtual_devices(const Settings& settings,
                                                               int workers,
                                                               const Environment& environment);

}  // namespace ddprun
