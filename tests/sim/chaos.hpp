// One seeded life of a cluster: a random configuration, faults of every kind for a while, then
// peace, in which everything must come to an end that is right. Throws Violation.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace ddprun::sim {

struct ChaosSummary {
  int rounds = 0;
  int restarts = 0;
  int exit_code = 0;
  std::uint64_t steps = 0;
};

[[nodiscard]] ChaosSummary run_chaos(std::uint64_t seed,
                                     const std::function<void(const std::string&)>& trace);

}  // namespace ddprun::sim
