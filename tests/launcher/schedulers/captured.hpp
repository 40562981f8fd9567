// The environments of real runs under Slurm 22.05, Open MPI 4.1 and 5.0, MPICH 4.0, one per file in
// tests/captured/; the first line of each describes its origin.
#pragma once

#include <fstream>
#include <string>

#include "base/environment.hpp"
#include "launcher/schedulers/placement.hpp"
#include "tests/launcher/outcome.hpp"

namespace ddprun::test {

inline Environment captured(const std::string& name) {
  std::ifstream file(std::string(DDPRUN_CAPTURED) + "/" + name + ".env");
  if (!file) FAIL("no captured environment " << name);
  Environment environment;
  for (std::string line; std::getline(file, line);) {
    const auto equals = line.find('=');
    if (line.starts_with('#') || equals == std::string::npos) continue;
    environment.emplace(line.substr(0, equals), line.substr(equals + 1));
  }
  REQUIRE(!environment.empty());
  return environment;
}

/// The placement of an environment that must be accepted.
inline Placement placed(const Environment& environment, Parent parent = Parent::kScheduler) {
  const auto placement = value_of(find_placement(environment, parent));
  REQUIRE(placement.has_value());
  return *placement;
}

/// The sentence for one that must be refused.
inline std::string refused(const Environment& environment, Parent parent = Parent::kScheduler) {
  return error_of(find_placement(environment, parent)).sentence;
}

}  // namespace ddprun::test
