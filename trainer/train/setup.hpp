// What a worker decides once, before training: threads, device, how it meets the others. Main
// thread. Errors: UsageError, TrainerError.
#pragma once

#include "trainer/ddp/group.hpp"
#include "trainer/options/options.hpp"
#include "worker_api/worker.hpp"

namespace ddprun::trainer {

/// --threads; else OMP_NUM_THREADS as the launcher set it; else the cores divided by the local
/// world size.
void set_threads(const TrainerOptions& options, const WorkerEnvironment& world);
[[nodiscard]] int threads_in_use();

struct Placement {
  at::Device device = at::kCPU;
  DeviceCollectives collectives = DeviceCollectives::kGloo;
  std::string description;  ///< "cpu", "NVIDIA H200"
};
/// Makes the device current. Ranks that outnumber the devices share them, and then use Gloo: NCCL
/// refuses two ranks on one device.
[[nodiscard]] Placement choose_placement(const TrainerOptions& options,
                                         const WorkerEnvironment& world);

/// Keys are those of the round, so that a store that lives on cannot answer with the last round's.
[[nodiscard]] GroupOptions group_options(const WorkerEnvironment& world,
                                         const Placement& placement);

}  // namespace ddprun::trainer
