// What Slurm's variables say (srun, salloc, sbatch; since Slurm 14). Pure, no thread rule.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "launcher/schedulers/placement.hpp"

namespace ddprun {

/// Of the step that srun started. See find_placement().
[[nodiscard]] Result<std::optional<Placement>> slurm_placement(const Environment& environment,
                                                               Parent parent);

/// The most of "2(x3),1", Slurm's tasks per node; nothing for any other text.
[[nodiscard]] std::optional<int> most_tasks_per_node(std::string_view text);

/// Of a step's run. The first 61 steps of a job have ports of their own, and so have the first
/// steps of 7993 jobs in a row.
[[nodiscard]] std::uint16_t slurm_port(std::uint64_t job, std::uint64_t step);

}  // namespace ddprun
