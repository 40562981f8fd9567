// The placement of a ddprun started by mpirun, from the variables of Open MPI or of PMI, which
// MPICH, Intel MPI and others set. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "launcher/schedulers/placement.hpp"

namespace ddprun {

/// For Open MPI's mpirun, version 4 and later. The first host follows from the list of its daemons
/// (Open MPI 5: from mpirun's own host) and this process's position in it; otherwise `hosts` is
/// empty.
[[nodiscard]] Result<std::optional<Placement>> openmpi_placement(const Environment& environment);

/// For Hydra (MPICH, Intel MPI) and other launchers with PMI_RANK and PMI_SIZE, which do not list
/// the hosts.
[[nodiscard]] Result<std::optional<Placement>> pmi_placement(const Environment& environment);

/// True for Hydra, false for a scheduler that also uses PMI.
[[nodiscard]] bool is_started_by_hydra(const Environment& environment);

/// A port in the range of placement.hpp, derived from the name.
[[nodiscard]] std::uint16_t port_of_name(std::string_view name);

}  // namespace ddprun
