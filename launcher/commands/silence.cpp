#include "launcher/commands/silence.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "agent/control/limits.hpp"
#include "agent/proc/process_table.hpp"
#include "base/forwarded_signal.hpp"
#include "base/printable.hpp"
#include "launcher/commands/table.hpp"
#include "launcher/commands/terminal.hpp"

namespace ddprun::commands {

namespace {

bool is_own(pid_t pid) {
  struct stat facts = {};
  const std::string path = "/proc/" + std::to_string(pid);
  return ::stat(path.c_str(), &facts) == 0 && facts.st_uid == ::geteuid();
}

/// Why it may be silent, as far as /proc tells.
std::string agent_text(int agent) {
  const auto process = agent > 0 ? find_process(agent) : std::nullopt;
  if (!process) return "";
  const std::string pid = std::to_string(agent);
  if (process->state == 'T' || process->state == 't') {
    return "its agent (pid " + pid + ") is stopped, and \"kill -CONT " + pid + "\" continues it; ";
  }
  return "its agent (pid " + pid + ") is in state " + std::string(1, process->state) +
         " and may be busy: try again; ";
}

}  // namespace

std::string silence_text(const FoundRun& run, const std::string& name, const std::string& why) {
  const std::string id = text_in(run.status, "run_id");
  const std::string seconds = std::to_string(control::kAnswerMax.count());
  std::string text = id.empty() ? "a ddprun that may be run " + printable(name) : "run " + id;
  text += " does not answer: " + (why.empty() ? "no answer within " + seconds + " s" : why);
  const std::int64_t front = number_in(run.status, "pid");
  const std::string whom = front > 0 ? std::to_string(front) : "PID";
  return text + "; its ranks may still run and hold their devices; " + agent_text(run.agent()) +
         "\"kill -KILL " + whom + "\"" + (front > 0 ? "" : " to the ddprun that was started") +
         " ends it here with its ranks";
}

int fail_silent(const FoundRun& run, const std::string& name, const std::string& why) {
  static_cast<void>(fail(silence_text(run, name, why)));
  return kCommandSilent;
}

// Each has a guard below it.
std::vector<pid_t> running_fronts() {
  std::vector<pid_t> fronts;
  const bool read = for_each_process([&fronts](const ProcessEntry& process) {
    if (process.name == kGuardName && is_own(process.pid)) fronts.push_back(process.parent);
  });
  if (!read) return {};
  std::sort(fronts.begin(), fronts.end());
  return fronts;
}

}  // namespace ddprun::commands
