// OMP_NUM_THREADS: how many threads the CPUs of a worker carry. Pure.
#pragma once

#include <optional>
#include <vector>

#include "agent/proc/numa.hpp"

namespace ddprun {

/// The CPUs that the workers of a node share.
struct SharedCpus {
  int allowed = 1;                // in the affinity
  std::optional<double> quota{};  // CPU time by the cgroups; none: no limit
  std::vector<CpuSet> bound{};    // of each worker, with --numa-binding; empty: none is bound
};

/// For each worker its share of them, at least 1. A CPU that several are bound to is divided among
/// these; the quota is divided among all.
[[nodiscard]] std::vector<int> threads_of_workers(int workers, const SharedCpus& cpus);

}  // namespace ddprun
