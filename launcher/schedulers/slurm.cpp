#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "base/format.hpp"
#include "base/program_name.hpp"
#include "launcher/options/values.hpp"
#include "launcher/schedulers/placement.hpp"

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

using Names = std::vector<std::string>;

bool is_name_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '_' || c == '.';
}

std::string padded(std::uint64_t number, std::size_t width) {
  const std::string digits = std::to_string(number);
  return digits.size() >= width ? digits : std::string(width - digits.size(), '0') + digits;
}

/// Appends one range of a bracket, "7" or "07-09", to `numbers`. Returns false if it is invalid or
/// too long.
bool append_range(std::string_view text, Names& numbers) {
  const auto dash = text.find('-');
  const std::string_view low = text.substr(0, dash);
  const auto first = parse_digits(low);
  const auto last = dash == std::string_view::npos ? first : parse_digits(text.substr(dash + 1));
  if (!first || !last || *first > *last || *last - *first >= kHostlistMax) return false;
  if (low.size() > kHostBytesMax) return false;
  for (std::uint64_t number = *first; number <= *last; ++number) {
    numbers.push_back(padded(number, low.size()));
  }
  return numbers.size() <= kHostlistMax;
}

std::optional<Names> numbers_of(std::string_view bracket) {
  Names numbers;
  while (true) {
    const auto comma = bracket.find(',');
    if (!append_range(bracket.substr(0, comma), numbers)) return std::nullopt;
    if (comma == std::string_view::npos) return numbers;
    bracket.remove_prefix(comma + 1);
  }
}

/// Every name followed by every ending; nullopt if there are too many, or one is too long.
std::optional<Names> product(const Names& names, const Names& endings) {
  if (names.size() * endings.size() > kHostlistMax) return std::nullopt;
  Names all;
  all.reserve(names.size() * endings.size());
  for (const std::string& name : names) {
    for (const std::string& ending : endings) {
      if (name.size() + ending.size() > kHostBytesMax) return std::nullopt;
      all.push_back(name + ending);
    }
  }
  return all;
}

/// One entry of the list, from its first letter to the next comma or the end.
std::optional<Names> expand_entry(std::string_view entry) {
  Names names{""};
  while (!entry.empty()) {
    std::optional<Names> endings;
    std::size_t used = 0;
    if (entry[0] == '[') {
      const auto close = entry.find(']');
      if (close == std::string_view::npos) return std::nullopt;
      endings = numbers_of(entry.substr(1, close - 1));
      used = close + 1;
    } else {
      used = std::min(entry.find('['), entry.size());
      const std::string_view letters = entry.substr(0, used);
      if (!std::all_of(letters.begin(), letters.end(), is_name_letter)) return std::nullopt;
      endings = Names{std::string(letters)};
    }
    if (!endings) return std::nullopt;
    auto longer = product(names, *endings);
    if (!longer) return std::nullopt;
    names = std::move(*longer);
    entry.remove_prefix(used);
  }
  if (names.front().empty()) return std::nullopt;
  return names;
}

/// The end of the first entry of `text`: a comma inside brackets belongs to the entry.
std::size_t end_of_entry(std::string_view text) {
  bool inside = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '[') inside = true;
    if (text[i] == ']') inside = false;
    if (text[i] == ',' && !inside) return i;
  }
  return text.size();
}

Error not_a_list(std::string_view text) {
  constexpr std::size_t kShownMax = 200;
  const std::string shown(text.substr(0, kShownMax));
  return {ErrorKind::kUsage, "'" + shown + (text.size() > kShownMax ? "..." : "") +
                                 "' is not a list of at most " + std::to_string(kHostlistMax) +
                                 " hosts such as node[01-16],login"};
}

/// Converts the inside of a bracket with a width prefix, "2:1-3,5", to Slurm's notation:
/// "01-03,05".
std::string padded_ranges(std::string_view text) {
  const auto colon = text.find(':');
  const auto width =
      colon == std::string_view::npos ? std::nullopt : parse_digits(text.substr(0, colon));
  if (!width || *width > kHostBytesMax) return std::string(text);
  std::string result;
  std::string number;
  const auto finish_number = [&] {
    if (!number.empty() && number.size() < *width) result.append(*width - number.size(), '0');
    result += number;
    number.clear();
  };
  for (const char c : text.substr(colon + 1)) {
    if (c >= '0' && c <= '9') {
      number += c;
    } else {
      finish_number();
      result += c;
    }
  }
  finish_number();
  return result;
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

Result<Names> expand_hostlist(std::string_view text) {
  Names all;
  std::string_view rest = text;
  while (true) {
    const std::size_t end = end_of_entry(rest);
    auto names = expand_entry(rest.substr(0, end));
    if (!names || all.size() + names->size() > kHostlistMax) return not_a_list(text);
    std::move(names->begin(), names->end(), std::back_inserter(all));
    if (end == rest.size()) return all;
    rest.remove_prefix(end + 1);
  }
}

std::string hostlist_of_node_regex(std::string_view text) {
  text = text.substr(0, text.find('@'));
  std::string result;
  while (!text.empty()) {
    const auto open = text.find('[');
    const auto close = open == std::string_view::npos ? open : text.find(']', open);
    if (close == std::string_view::npos) return result + std::string(text);
    result += text.substr(0, open + 1);
    result += padded_ranges(text.substr(open + 1, close - open - 1)) + "]";
    text.remove_prefix(close + 1);
  }
  return result;
}

}  // namespace ddprun
