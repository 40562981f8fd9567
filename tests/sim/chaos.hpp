// One seeded life of a cluster: a random configuration, faults of every kind for a while, then
// peace, in which everything must come to an end that is right. Throws Violation.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "tests/sim/storm.hpp"

namespace ddprun::sim {

struct ChaosSummary {
  int rounds = 0;
  int restarts = 0;
  int exit_code = 0;
  std::uint64_t steps = 0;
  std::map<std::string_view, int> known_violations;
  std::set<std::string> transitions;  // see World
};

struct ChaosOptions {
  Faults<Storm> faults = sole_faults();
  std::string strict;  // a promise whose violation is fatal although it is known to be broken
};

[[nodiscard]] ChaosSummary run_chaos(std::uint64_t seed, const ChaosOptions& options,
                                     const std::function<void(const std::string&)>& trace);

}  // namespace ddprun::sim
