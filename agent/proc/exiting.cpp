#include "agent/proc/exiting.hpp"

#include <sys/wait.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include "agent/proc/process_facts.hpp"
#include "agent/proc/process_table.hpp"

namespace ddprun {

namespace {

// Fields after the name, from 0.
constexpr std::size_t kFlags = 6;
constexpr std::size_t kExitCode = 49;
constexpr unsigned long kExiting = 0x4;  // PF_EXITING of the kernel

unsigned long number_at(const std::vector<std::string_view>& fields, std::size_t at) {
  unsigned long number = 0;
  std::from_chars(fields[at].data(), fields[at].data() + fields[at].size(), number);
  return number;
}

bool any_thread_is_stuck(pid_t process) {
  std::error_code why;
  const std::string tasks = "/proc/" + std::to_string(process) + "/task";
  for (std::filesystem::directory_iterator task(tasks, why), end; !why && task != end;
       task.increment(why)) {
    const std::string stat =
        read_proc(process, ("task/" + task->path().filename().string() + "/stat").c_str());
    const auto name_end = stat.rfind(')');
    if (name_end != std::string::npos && stat.substr(name_end, 3) == ") D") return true;
  }
  return false;
}

/// As waitpid() will have it; none: it has not begun to exit.
std::optional<int> wait_status(std::string_view stat) {
  const auto name_end = stat.rfind(')');
  if (name_end == std::string_view::npos) return std::nullopt;
  std::vector<std::string_view> fields;
  for (std::string_view rest = stat.substr(name_end + 1); !rest.empty();) {
    const auto begin = std::min(rest.find_first_not_of(" \n"), rest.size());
    const auto end = std::min(rest.find_first_of(" \n", begin), rest.size());
    if (end > begin) fields.push_back(rest.substr(begin, end - begin));
    rest.remove_prefix(end);
  }
  if (fields.size() <= kExitCode || (number_at(fields, kFlags) & kExiting) == 0) {
    return std::nullopt;
  }
  return static_cast<int>(number_at(fields, kExitCode));
}

}  // namespace

std::optional<ExitStatus> parse_exiting(std::string_view stat) {
  const int status = wait_status(stat).value_or(0);
  if (status == 0) return std::nullopt;
  if (WIFEXITED(status)) return ExitStatus::exited(WEXITSTATUS(status));
  return ExitStatus::signaled(
      WTERMSIG(status), WCOREDUMP(status) ? ExitStatus::Core::kDumped : ExitStatus::Core::kNone);
}

bool is_exiting_with_0(pid_t process) {
  return wait_status(read_proc(process, "stat")) == 0;
}

std::optional<ExitStatus> status_of_exiting(pid_t process) {
  const auto status = parse_exiting(read_proc(process, "stat"));
  if (!status || any_thread_is_stuck(process)) return std::nullopt;
  return status;
}

// The kernel lists no zombie in a cgroup.
bool is_alone(pid_t process, const std::optional<Cgroup>& leaf, Orphans& orphans) {
  if (leaf) {
    const std::vector<pid_t> members = leaf->members();
    return std::all_of(members.begin(), members.end(),
                       [process](pid_t member) { return member == process; });
  }
  if (orphans.look() != Orphans::Seen::kAll) return false;
  const auto lives = [](pid_t child) {
    const auto entry = find_process(child);
    return entry && !entry->ended;
  };
  const std::vector<pid_t> children = children_of(process);
  if (std::any_of(children.begin(), children.end(), lives)) return false;
  const auto& left = orphans.left();
  return std::none_of(left.begin(), left.end(),
                      [process](const auto& orphan) { return orphan.second.session == process; });
}

}  // namespace ddprun
