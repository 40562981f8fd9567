// What an mpirun says that started ddprun as its program: Open MPI's variables, and PMI's, which
// MPICH, Intel MPI and others set. Pure, no thread rule.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "launcher/schedulers/placement.hpp"

namespace ddprun {

/// Of Open MPI's mpirun, 4 and later. Which host is the first follows from the list of its daemons
/// (Open MPI 5: from mpirun's own host) and from this process's place in it; where it does not,
/// `hosts` is empty.
[[nodiscard]] Result<std::optional<Placement>> openmpi_placement(const Environment& environment);

/// Of Hydra (MPICH, Intel MPI) and of other launchers with PMI_RANK and PMI_SIZE. They do not tell
/// the hosts.
[[nodiscard]] Result<std::optional<Placement>> pmi_placement(const Environment& environment);

/// Hydra, rather than a scheduler that speaks PMI too.
[[nodiscard]] bool is_started_by_hydra(const Environment& environment);

/// From the range of placement.hpp, the same for the same name.
[[nodiscard]] std::uint16_t port_of_name(std::string_view name);

}  // namespace ddprun
