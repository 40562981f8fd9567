// One seeded life of a cluster: a random configuration, faults of every kind for a while, then
// peace, in which everything must come to an end that is right. Throws Violation.
#pragma once

#include <cstdint>
#include <string>

#include "tests/sim/lives.hpp"
#include "tests/sim/storm.hpp"

namespace ddprun::sim {

struct ChaosOptions {
  Faults<Storm> faults = sole_faults();
  std::string strict;  // a promise whose violation is fatal although it is known to be broken
};

[[nodiscard]] Summary run_chaos(std::uint64_t seed, const ChaosOptions& options,
                                const Print& trace);

}  // namespace ddprun::sim
