// plan: from the command line and the facts of a round to what each worker is given: its arguments
// and its complete environment, as torchrun does it; and as a table for people. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "agent/config/launch_config.hpp"
#include "base/environment.hpp"
#include "base/types.hpp"

namespace ddprun {

/// What a round is: the same on all nodes, except for the place of this one. Nodes may have
/// different numbers of workers and different roles.
struct RoundFacts {
  std::string nonce{};          // of this process, for worker_mark()
  std::string worker_socket{};  // for worker_api, as DDPRUN_WORKER_SOCKET has it; empty: none
  std::string timer_pipe{};     // for TORCHELASTIC_TIMER_FILE; empty: none here
  Round round{1};
  RestartCount restarts;
  WorldSize world{1};
  int groups = 1;           // nodes of the round
  WorldSize role_world{1};  // workers of this node's role
  std::string master_addr;
  std::uint16_t master_port = 0;
  int group_rank = 0;        // of this node
  Rank first_rank;           // of this node's local rank 0
  int first_role_rank = 0;   // the same among the workers of its role
  bool may_be_last = false;  // a failure of the round may end the run
};

struct WorkerPlan {
  Rank rank;
  LocalRank local_rank;
  std::vector<std::string> argv;
  Environment environment;  // complete
};

/// CUDA_VISIBLE_DEVICES of all workers together, as --gpus or the environment has it.
[[nodiscard]] std::optional<std::string> visible_devices_of_workers(const WorkerConfig& workers,
                                                                    const Environment& inherited);

/// What tells a process that a worker of this process started, by DDPRUN_WORKER in its environment:
/// "3e35e7dd/2/0" for local rank 0 of round 2.
[[nodiscard]] std::string worker_mark(const RoundFacts& facts, LocalRank local_rank);

/// The same for a spare, which has no place yet: "3e35e7dd/spare/4".
[[nodiscard]] std::string spare_mark(const std::string& nonce, int spare);

/// What of it a worker that runs already takes over when it gets this round; its files, its mark
/// and its devices stay.
[[nodiscard]] Environment round_variables(const WorkerPlan& plan);

/// `error_file` is the absolute path for TORCHELASTIC_ERROR_FILE, empty where there are no files.
[[nodiscard]] WorkerPlan plan_worker(const LaunchConfig& config, const Environment& inherited,
                                     const RoundFacts& facts, LocalRank local_rank,
                                     const std::string& error_file);

/// Of a process that waits for the place of a lost rank (--spares): without what a place decides.
/// `facts`: nonce and worker_socket count.
[[nodiscard]] WorkerPlan plan_spare(const LaunchConfig& config, const Environment& inherited,
                                    const RoundFacts& facts, int spare,
                                    const std::string& error_file);

/// "3-5", "3".
[[nodiscard]] std::string range_text(int first, int last);
/// "0-7,64-71".
[[nodiscard]] std::string ranges_text(const std::set<int>& numbers);

// Lines of the table of ranks at the start; further ranks are counted.
inline constexpr std::size_t kPlacementLinesMax = 16;

/// A worker of this node and what it was given; empty where nothing was chosen for it.
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
