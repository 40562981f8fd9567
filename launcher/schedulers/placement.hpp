// Placement: what a scheduler, or an mpirun, that started this ddprun says about where it runs. The
// variables are read, never asked for: no scheduler's library or command is needed. Pure, no thread
// rule.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/environment.hpp"
#include "base/result.hpp"

namespace ddprun {

// Where the nodes of a run meet unless the user says otherwise: a port from this range that follows
// from the job, so that runs of several jobs on one node keep apart. Below the ports that the
// kernel hands out (32768) and off torchrun's 29400 and 29500. The size is a prime.
inline constexpr std::uint16_t kSchedulerPortFirst = 21000;
inline constexpr std::uint16_t kSchedulerPortCount = 7993;
inline constexpr std::uint16_t kSchedulerPortLast = kSchedulerPortFirst + kSchedulerPortCount - 1;
static_assert(kSchedulerPortLast < 29400);

struct Placement {
  std::string job;  // for sentences: "Slurm step 12.0"
  int nodes = 1;    // 1..kHostlistMax
  int index = 0;    // of this node, 0 <= index < nodes
  /// Of each node by index, or of the first one alone; names as the scheduler has them. Empty: it
  /// does not tell.
  std::vector<std::string> hosts;
  std::string list;        // the hosts as the scheduler writes them, for sentences
  std::string run_id;      // the same on every node; empty: the scheduler has no name for the job
  std::uint16_t port = 0;  // the same on every node, from the range above
};

/// What started this process: the scheduler's own daemon, or a shell that somebody types into.
enum class Parent { kScheduler, kShell };

/// Nothing: no scheduler started this process, or it is the job's only node and not of a step. An
/// error where a run made of these variables would be a world of one, or of too many, by mistake:
/// several tasks on a node, a batch script of several nodes, variables that contradict each other.
[[nodiscard]] Result<std::optional<Placement>> find_placement(const Environment& environment,
                                                              Parent parent);

/// A refusal's last words: how to run on one node all the same.
inline constexpr const char* kStandaloneHere = "--standalone runs on this node alone";

/// For variables that contradict themselves; `variable` with its value.
[[nodiscard]] Error invalid_variable(const std::string& job, const std::string& variable);

/// GPUs that the scheduler gave this task on this node; nothing when it gave none or does not say.
[[nodiscard]] std::optional<int> allocated_gpus(const Environment& environment);

}  // namespace ddprun
