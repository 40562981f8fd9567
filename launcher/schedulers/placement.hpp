// Placement: where the scheduler or mpirun that started this ddprun runs it, read from environment
// variables only, without a library or command of the scheduler. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/environment.hpp"
#include "base/limits.hpp"
#include "base/result.hpp"
#include "launcher/machine/machine.hpp"
#include "launcher/request/request.hpp"

namespace ddprun {

struct Placement {
  std::string job;  // for sentences: "Slurm step 12.0"
  int nodes = 1;    // 1..kHostlistMax
  int index = 0;    // index of this node, 0 <= index < nodes
  /// The names of all nodes by index, or of the first one only, as the scheduler writes them. Empty
  /// if it does not list them.
  std::vector<std::string> hosts;
  std::string list;        // the hosts as the scheduler writes them, for sentences
  std::string run_id;      // the same on every node; empty if the scheduler has no name for the job
  std::uint16_t port = 0;  // the same on every node, of kSchedulerPortCount
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

// Compressed lists of host names, as Slurm and Open MPI write them to the environment. Pure.

// Maximum number of names in a list, and of bytes in a name (DNS); more is an error.
inline constexpr std::size_t kHostlistMax = kNodesMax;
inline constexpr std::size_t kHostBytesMax = kNameBytesMax;

/// Expands "n[1-3,07-09],gpu-a[0-1]b[2-3],x" like `scontrol show hostnames`: a range keeps the
/// width of its first number, several brackets form a product whose last factor varies fastest.
/// Names consist of letters, digits, '-', '_' and '.'. The sentence of an error starts with the
/// list.
[[nodiscard]] Result<std::vector<std::string>> expand_hostlist(std::string_view text);

/// Converts Open MPI's orte_node_regex, "vm,node[2:1-3]-ib@0(4)", to Slurm's notation:
/// "vm,node[01-03]-ib". Any other text is returned unchanged.
[[nodiscard]] std::string hostlist_of_node_regex(std::string_view text);

// The placement from Slurm's variables (srun, salloc, sbatch; Slurm 14 and later). Pure.

/// The placement in a step started by srun. See find_placement().
[[nodiscard]] Result<std::optional<Placement>> slurm_placement(const Environment& environment,
                                                               Parent parent);

/// The maximum of "2(x3),1", Slurm's tasks per node; nullopt for any other text.
[[nodiscard]] std::optional<int> most_tasks_per_node(std::string_view text);

/// The port of a step's run. The first 61 steps of a job have different ports, and so do the first
/// steps of 7993 consecutive jobs.
[[nodiscard]] std::uint16_t slurm_port(std::uint64_t job, std::uint64_t step);

// The placement of a ddprun started by mpirun, from the variables of Open MPI or of PMI, which
// MPICH, Intel MPI and others set. Pure.

/// For Open MPI's mpirun, version 4 and later. The first host follows from the list of its daemons
/// (Open MPI 5: from mpirun's own host) and this process's position in it; otherwise `hosts` is
/// empty.
[[nodiscard]] Result<std::optional<Placement>> openmpi_placement(const Environment& environment);

/// For Hydra (MPICH, Intel MPI) and other launchers with PMI_RANK and PMI_SIZE, which do not list
/// the hosts.
[[nodiscard]] Result<std::optional<Placement>> pmi_placement(const Environment& environment);

/// True for Hydra, false for a scheduler that also uses PMI.
[[nodiscard]] bool is_started_by_hydra(const Environment& environment);

/// A port from kSchedulerPortFirst on, derived from the name.
[[nodiscard]] std::uint16_t port_of_name(std::string_view name);

// A scheduler supplies what the command line leaves out: under `srun ddprun prog` the number of
// nodes, this node's position, the rendezvous, the run id, and a worker for each GPU. What is given
// as an option or PET_* variable stays as it is. Pure.

/// A file of options may be there for other machines, too: leaves its nodes and rendezvous out
/// where a scheduler decides them. Returns a note for each option.
[[nodiscard]] Result<std::vector<std::string>> leave_out_nodes(Settings& settings,
                                                               const RendezvousRequest& asked,
                                                               const Machine& machine);

/// Returns notes for the user. Leaves everything as it is if no scheduler started this process, if
/// the options describe the run completely (--standalone, --hosts, one node, or nodes and an
/// address), and in a worker of another run, whose variables are about that run. Otherwise an error
/// for what would unintentionally be a world of one.
[[nodiscard]] Result<std::vector<std::string>> fill_from_scheduler(Request& request,
                                                                   const Machine& machine);

}  // namespace ddprun
