// The placement from Slurm's variables (srun, salloc, sbatch; Slurm 14 and later). Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "launcher/schedulers/placement.hpp"

namespace ddprun {

/// The placement in a step started by srun. See find_placement().
[[nodiscard]] Result<std::optional<Placement>> slurm_placement(const Environment& environment,
                                                               Parent parent);

/// The maximum of "2(x3),1", Slurm's tasks per node; nullopt for any other text.
[[nodiscard]] std::optional<int> most_tasks_per_node(std::string_view text);

/// The port of a step's run. The first 61 steps of a job have different ports, and so do the first
/// steps of 7993 consecutive jobs.
[[nodiscard]] std::uint16_t slurm_port(std::uint64_t job, std::uint64_t step);

}  // namespace ddprun
