// placement: which rank of this node has which device, CPUs, threads and log file, as a table for
// people. Pure, no thread rule.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "agent/config/launch_config.hpp"
#include "agent/config/plan.hpp"

namespace ddprun {

// Lines of the table of ranks at the start; further ranks are counted.
inline constexpr std::size_t kPlacementLinesMax = 16;

/// A worker and what it was given; empty where nothing was chosen for it.
struct Placed {
  Rank rank;
  std::string device{};   // "GPU 2", "MIG-4f.."
  std::string cpus{};     // "0-7,64-71": those that it is bound to
  std::string threads{};  // OMP_NUM_THREADS
  std::string log{};      // its file
};
[[nodiscard]] Placed placed(const LaunchConfig& config, const WorkerPlan& plan, std::string log);

/// A heading and a line for each rank, or for several ranks in a row that have the same; beyond
/// kPlacementLinesMax lines only a count. Columns without anything are left out; empty if no other
/// than rank and host is left.
[[nodiscard]] std::string placement_table(const std::string& host,
                                          const std::vector<Placed>& workers);

}  // namespace ddprun
