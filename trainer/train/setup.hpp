// Set-up before training: threads, device, and the group's rendezvous. Main thread. Errors:
// UsageError, TrainerError.
#pragma once

#include "trainer/ddp/group.hpp"
#include "trainer/options/options.hpp"
#include "worker_api/worker.hpp"

namespace ddprun::trainer {

/// --threads, otherwise 1 with --deterministic, otherwise OMP_NUM_THREADS, otherwise the cores
/// divided by the local world size.
void set_threads(const TrainerOptions& options, const WorkerEnvironment& world);
[[nodiscard]] int threads_in_use();

struct Placement {
  at::Device device = at::kCPU;
  DeviceCollectives collectives = DeviceCollectives::kGloo;
  std::string description;  ///< "cpu", "NVIDIA H200"
};
/// Makes the device current. If there are more ranks than devices they share them and use Gloo,
/// because NCCL refuses two ranks on one device.
[[nodiscard]] Placement choose_placement(const TrainerOptions& options,
                                         const WorkerEnvironment& world);

/// Keys contain the round, so that a store that outlives a round does not return values of the
/// previous one.
[[nodiscard]] GroupOptions group_options(const WorkerEnvironment& world,
                                         const Placement& placement);

}  // namespace ddprun::trainer
