#include "agent/report/own_workers.hpp"

namespace ddprun {

namespace {

std::string claimant_text(const Claimant& claimant) {
  std::string text = "pid " + std::to_string(claimant.pid);
  if (claimant.below) text += " (started by rank " + std::to_string(claimant.below->value()) + ")";
  return text;
}

}  // namespace

std::string own_workers_text(const Claimant& first, const Claimant& second, Started started) {
  const bool seen = first.below.has_value() || second.below.has_value();
  if (!seen || first.is_worker || second.is_worker) return {};
  const std::string seems =
      "rank 0 is two processes at once, " + claimant_text(first) + " and " + claimant_text(second) +
      ": the script seems to start its own workers, as torch.multiprocessing.spawn does, ";
  if (started.workers_here > 1) {
    return seems + "in each of the " + std::to_string(started.workers_here) +
           " that ddprun has started; use --nproc-per-node=1, or remove mp.spawn and take RANK and "
           "LOCAL_RANK from the environment";
  }
  if (started.nodes > 1) {
    return seems +
           "once on each node; remove mp.spawn, take RANK and LOCAL_RANK from the environment and "
           "let --nproc-per-node start the workers, or count rank and world_size over all nodes";
  }
  return seems +
         "without a RANK and WORLD_SIZE of their own; remove mp.spawn, take RANK and LOCAL_RANK "
         "from the environment and let --nproc-per-node start the workers, or pass rank and "
         "world_size to init_process_group";
}

}  // namespace ddprun
