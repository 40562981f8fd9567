#include "trainer/train/setup.hpp"

#include <ATen/Context.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <cstdlib>
#include <thread>

#include "trainer/ddp/limits.hpp"
#include "trainer/device/accelerator.hpp"
#include "trainer/error.hpp"

namespace ddprun::trainer {

void set_threads(const TrainerOptions& options, const WorkerEnvironment& world) {
  if (options.threads == 0 && options.micro_batches > 0) {  // bits may depend on the threads
    at::set_num_threads(1);
    return;
  }
  if (options.threads == 0 && std::getenv("OMP_NUM_THREADS") != nullptr) return;
  const auto cores = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  const int share = std::max(1, cores / std::max(1, world.local_world_size));
  at::set_num_threads(options.threads > 0 ? options.threads : share);
}

int threads_in_use() {
  return at::get_num_threads();
}

Placement choose_placement(const TrainerOptions& options, const WorkerEnvironment& world) {
  const int devices = options.device == DeviceChoice::kCpu ? 0 : accelerator_count();
  if (devices == 0) {
    if (options.device == DeviceChoice::kCuda) {
      throw UsageError("--device cuda: no CUDA device is visible; use --device cpu or auto");
    }
    return {at::kCPU, DeviceCollectives::kGloo, "cpu"};
  }
  const int index = options.local_rank.value_or(world.local_rank) % devices;
  use_accelerator(index);
  Placement placement{at::Device(at::kCUDA, static_cast<at::DeviceIndex>(index)),
                      DeviceCollectives::kNccl, accelerator_name(index)};
  if (world.local_world_size > devices) placement.collectives = DeviceCollectives::kGloo;
  return placement;
}

GroupOptions group_options(const WorkerEnvironment& world, const Placement& placement) {
  GroupOptions group;
  group.rank = world.rank;
  group.size = world.world_size;
  group.store = {world.master_addr, world.master_port};
  group.store_role = world.use_agent_store ? StoreRole::kConnect : StoreRole::kServe;
  group.key_prefix = "trainer/round" + std::to_string(world.round);
  group.device = placement.device;
  group.device_collectives = placement.collectives;
  group.timeout = kCollectiveTimeout;
  return group;
}

}  // namespace ddprun::trainer
