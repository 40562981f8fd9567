// Placement: where the scheduler or mpirun that started this ddprun runs it, read from environment
// variables only, without a library or command of the scheduler. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/environment.hpp"
#include "base/result.hpp"

namespace ddprun {

// The default rendezvous port is derived from the job and lies in this range, so that runs of
// several jobs on one node use different ports. Below the kernel's ephemeral range (32768) and
// torchrun's 29400 and 29500. The size is a prime.
inline constexpr std::uint16_t kSchedulerPortFirst = 21000;
inline constexpr std::uint16_t kSchedulerPortCount = 7993;
inline constexpr std::uint16_t kSchedulerPortLast = kSchedulerPortFirst + kSchedulerPortCount - 1;
static_assert(kSchedulerPortLast < 29400);

struct Placement {
  std::string job;  // for sentences: "Slurm step 12.0"
  int nodes = 1;    // 1..kHostlistMax
  int index = 0;    // index of this node, 0 <= index < nodes
  /// The names of all nodes by index, or of the first one only, as the scheduler writes them. Empty
  /// if it does not list them.
  std::vector<std::string> hosts;
  std::string list;        // the hosts as the scheduler writes them, for sentences
  std::string run_id;      // the same on every node; empty if the scheduler has no name for the job
  std::uint16_t port = 0;  // the same on every node, from the range above
};

/// What started this process: the scheduler's daemon, or an interactive shell.
enum class Parent { kScheduler, kShell };

/// nullopt if no scheduler started this process, or if it is the job's only node and not part of a
/// step. An error if a run based on these variables would unintentionally be a world of one, or of
/// too many: several tasks on a node, a batch script of several nodes, contradictory variables.
[[nodiscard]] Result<std::optional<Placement>> find_placement(const Environment& environment,
                                                              Parent parent);

/// The end of a refusal: how to run on one node.
inline constexpr const char* kStandaloneHere = "--standalone runs on this node only";

/// The error for an invalid variable; `variable` includes its value.
[[nodiscard]] Error invalid_variable(const std::string& job, const std::string& variable);

/// The error for several tasks on one node; `remedy` says how to start one on each node.
[[nodiscard]] Error several_tasks(const std::string& job, int tasks, const std::string& remedy);

/// The variable as a number up to `most`; nullopt if it is not set, not a number or larger.
[[nodiscard]] std::optional<int> count_in(const Environment& environment,
                                          const std::string& variable, int most);

/// The number of GPUs assigned to this task on this node; nullopt if none or unknown.
[[nodiscard]] std::optional<int> allocated_gpus(const Environment& environment);

}  // namespace ddprun
