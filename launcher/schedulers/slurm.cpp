#include "launcher/schedulers/placement.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "base/count_text.hpp"
#include "base/program_name.hpp"
#include "launcher/options/values.hpp"

namespace ddprun {
namespace {

// Steps not started by srun have numbers from here on: batch script, salloc's shell, extern.
constexpr std::uint64_t kSpecialSteps = 0xFFFFFFF0;

/// The first of the two that is set; the second is an older name.
std::string either(const Environment& environment, const std::string& name,
                   const std::string& older) {
  return value_or(environment, name, value_or(environment, older, ""));
}

std::string one_per_node(int nodes, const std::string& options = "") {
  return "srun " + options + "--ntasks=" + std::to_string(nodes) + " --ntasks-per-node=1 " +
         program_name() + " ...";
}

/// A job submitted from within a step of another job inherits that step's variables, except those
/// that every job and every step sets: these distinguish the two.
bool is_of_this_job(const Environment& environment) {
  const auto nodes = count_in(environment, "SLURM_NNODES", kNodesMax);
  const auto of_step = count_in(environment, "SLURM_STEP_NUM_NODES", kNodesMax);
  if (nodes && of_step && *nodes != *of_step) return false;
  const auto in_step = expand_hostlist(value_or(environment, "SLURM_STEP_NODELIST", ""));
  const auto in_job = expand_hostlist(value_or(environment, "SLURM_JOB_NODELIST", ""));
  if (!in_step || !in_job) return true;
  return std::all_of(in_step->begin(), in_step->end(), [&](const std::string& host) {
    return std::find(in_job->begin(), in_job->end(), host) != in_job->end();
  });
}

/// The number of the step of which this process is a task.
std::optional<std::uint64_t> step_of(const Environment& environment) {
  const auto step = parse_digits(either(environment, "SLURM_STEP_ID", "SLURM_STEPID"));
  if (!step || *step >= kSpecialSteps || !is_of_this_job(environment)) return std::nullopt;
  return step;
}

/// A job of several nodes, and a ddprun that would be a world of one. `remedy` starts one on each.
Error not_by_srun(const std::string& job, const std::string& parts, const std::string& remedy) {
  return usage("this is Slurm job " + job + " of " + parts +
               ", but srun did not start this ddprun, which would run on this node only: " +
               remedy + " runs on all of them, " + kStandaloneHere);
}

/// In a job, but not started by srun: a batch script or salloc's shell.
Result<std::optional<Placement>> outside_of_steps(const Environment& environment) {
  const std::string job = either(environment, "SLURM_JOB_ID", "SLURM_JOBID");
  const auto parts = count_in(environment, "SLURM_HET_SIZE", kNodesMax);
  if (parts && *parts > 1) {
    return not_by_srun(job, std::to_string(*parts) + " components",
                       "srun --het-group=0-" + std::to_string(*parts - 1) +
                           " --ntasks-per-node=1 " + program_name() + " ...");
  }
  const auto nodes =
      parse_digits(either(environment, "SLURM_JOB_NUM_NODES", "SLURM_NNODES")).value_or(1);
  if (nodes <= 1) return std::optional<Placement>();
  const int count = static_cast<int>(std::min<std::uint64_t>(nodes, kHostlistMax));
  return not_by_srun(job,
                     count_text(count, "node") + " (" +
                         either(environment, "SLURM_JOB_NODELIST", "SLURM_NODELIST") + ")",
                     one_per_node(count));
}

/// Checks that the variables of a step are complete; names one that is not.
Result<Placement> read_step(const Environment& environment, const std::string& name) {
  Placement placement;
  placement.job = "Slurm step " + name;
  placement.run_id = name;
  const auto broken = [&](const std::string& variable) {
    return invalid_variable(placement.job,
                            variable + "='" + value_or(environment, variable, "") + "'");
  };
  const auto nodes = count_in(environment, "SLURM_STEP_NUM_NODES", kNodesMax);
  if (!nodes || *nodes < 1) return broken("SLURM_STEP_NUM_NODES");
  placement.nodes = *nodes;
  if (*nodes == 1) return placement;
  placement.list = value_or(environment, "SLURM_STEP_NODELIST", "");
  auto hosts = expand_hostlist(placement.list);
  if (!hosts || hosts->size() != static_cast<std::size_t>(*nodes)) {
    return broken("SLURM_STEP_NODELIST");
  }
  placement.hosts = std::move(*hosts);
  const auto index = count_in(environment, "SLURM_NODEID", *nodes - 1);
  if (!index) return broken("SLURM_NODEID");
  placement.index = *index;
  // The name is more reliable than the number if a list is not in the order of the nodes.
  const auto own = std::find(placement.hosts.begin(), placement.hosts.end(),
                             value_or(environment, "SLURMD_NODENAME", ""));
  if (own != placement.hosts.end()) {
    placement.index = static_cast<int>(own - placement.hosts.begin());
  }
  return placement;
}

/// `srun --pty` starts a shell in the first task and nothing useful in the others. All its
/// descendants inherit the variable, including tasks of further steps, but those have no terminal.
bool is_pty_shell(const Environment& environment, Parent parent) {
  return parent == Parent::kShell && environment.contains("SLURM_PTY_PORT");
}

Error shell_on_one_of(const Placement& placement) {
  return usage(
      "this is a shell of " + placement.job + " on one of " + count_text(placement.nodes, "node") +
      " (" + placement.list + "), so ddprun would run on this node only: " +
      one_per_node(placement.nodes, "--overlap ") + " runs on all of them, " + kStandaloneHere);
}

}  // namespace

std::optional<int> most_tasks_per_node(std::string_view text) {
  int most = 0;
  for (const std::string& part : split_list(text)) {
    std::string_view count = part;
    if (const auto open = count.find("(x"); open != std::string_view::npos) {
      if (!count.ends_with(')') || !parse_digits(count.substr(open + 2, count.size() - open - 3))) {
        return std::nullopt;
      }
      count = count.substr(0, open);
    }
    const auto tasks = parse_digits(count);
    if (!tasks) return std::nullopt;
    most = std::max(most, static_cast<int>(std::min<std::uint64_t>(*tasks, kHostlistMax)));
  }
  return most;
}

std::uint16_t slurm_port(std::uint64_t job, std::uint64_t step) {
  constexpr std::uint64_t kStepsApart = 61;
  const std::uint64_t place = job % kSchedulerPortCount * kStepsApart + step % kSchedulerPortCount;
  return static_cast<std::uint16_t>(kSchedulerPortFirst + place % kSchedulerPortCount);
}

Result<std::optional<Placement>> slurm_placement(const Environment& environment, Parent parent) {
  const std::string job = either(environment, "SLURM_JOB_ID", "SLURM_JOBID");
  const auto job_number = parse_digits(job);
  if (!job_number) return std::optional<Placement>();
  const auto step = step_of(environment);
  if (!step) return outside_of_steps(environment);
  auto placement = read_step(environment, job + "." + std::to_string(*step));
  if (!placement) return placement.error();
  if (is_pty_shell(environment, parent)) {
    if (placement->nodes > 1) return shell_on_one_of(*placement);
    return std::optional<Placement>(std::move(*placement));
  }
  const auto tasks = most_tasks_per_node(value_or(environment, "SLURM_STEP_TASKS_PER_NODE", "1"));
  if (tasks && *tasks > 1) {
    return several_tasks(placement->job, *tasks, "with " + one_per_node(placement->nodes));
  }
  placement->port = slurm_port(*job_number, *step);
  return std::optional<Placement>(std::move(*placement));
}

}  // namespace ddprun
