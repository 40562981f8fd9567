#include "launcher/schedulers/placement.hpp"

#include <algorithm>
#include <utility>

#include "base/program_name.hpp"
#include "launcher/options/values.hpp"

namespace ddprun {
namespace {

/// For an mpirun inside Slurm: its variables identify the task, and Slurm's list the hosts and the
/// job if mpirun does not. Its tasks are in the order of Slurm's list.
void fill_in_from_slurm(const Environment& environment, Placement& placement) {
  const std::string list = value_or(environment, "SLURM_JOB_NODELIST", "");
  if (list.empty()) return;
  if (placement.run_id.empty()) {
    // Not the step: the first node's daemon may not belong to one.
    placement.run_id = "mpi-" + value_or(environment, "SLURM_JOB_ID", "");
    placement.port = port_of_name(placement.run_id);
  }
  if (!placement.hosts.empty()) return;
  auto hosts = expand_hostlist(list);
  if (!hosts || hosts->size() != static_cast<std::size_t>(placement.nodes)) return;
  placement.hosts = std::move(*hosts);
  placement.list = list;
}

Result<std::optional<Placement>> mpi_placement(const Environment& environment) {
  if (environment.contains("OMPI_COMM_WORLD_SIZE")) return openmpi_placement(environment);
  if (is_started_by_hydra(environment)) return pmi_placement(environment);
  return std::optional<Placement>();
}

}  // namespace

Error invalid_variable(const std::string& job, const std::string& variable) {
  return usage(job + ": " + variable +
               " is invalid, so the nodes cannot be discovered automatically: pass --nnodes, "
               "--node-rank and --rdzv-endpoint; " +
               kStandaloneHere);
}

Result<std::optional<Placement>> find_placement(const Environment& environment, Parent parent) {
  // mpirun uses srun to start its daemons, so its variables describe this task and Slurm's the
  // daemon. The variables of a single task may also be inherited from an outer shell: then Slurm's
  // count.
  auto placement = mpi_placement(environment);
  if (!placement) return placement;
  if (*placement && (*placement)->nodes > 1) {
    fill_in_from_slurm(environment, **placement);
    return placement;
  }
  auto slurm = slurm_placement(environment, parent);
  if (!slurm || *slurm) return slurm;
  if (*placement) return placement;
  return pmi_placement(environment);
}

Error several_tasks(const std::string& job, int tasks, const std::string& remedy) {
  return usage(job + " starts " + program_name() + " " + std::to_string(tasks) +
               " times on a node, and each would start its own workers on the same GPUs: start "
               "one on each node " +
               remedy + ", and set the number of workers per node with --nproc-per-node; " +
               kStandaloneHere);
}

std::optional<int> count_in(const Environment& environment, const std::string& variable, int most) {
  const auto number = parse_digits(value_or(environment, variable, ""));
  if (!number || most < 0 || *number > static_cast<std::uint64_t>(most)) return std::nullopt;
  return static_cast<int>(*number);
}

std::optional<int> allocated_gpus(const Environment& environment) {
  const bool given =
      environment.contains("SLURM_GPUS_ON_NODE") || environment.contains("SLURM_STEP_GPUS");
  if (!given) return std::nullopt;
  const auto visible = environment.find("CUDA_VISIBLE_DEVICES");
  if (visible != environment.end()) {
    const std::string& list = visible->second;
    if (list.empty() || list == "NoDevFiles") return std::nullopt;
    return static_cast<int>(1 + std::count(list.begin(), list.end(), ','));
  }
  const auto count = count_in(environment, "SLURM_GPUS_ON_NODE", kNodesMax).value_or(0);
  return count > 0 ? std::optional<int>(count) : std::nullopt;
}

}  // namespace ddprun
