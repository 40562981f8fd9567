#include "agent/proc/process_facts.hpp"

#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace ddprun {
namespace {

constexpr std::size_t kKernelFramesMax = 16;
constexpr int kWrapperDepthMax = 8;

/// Those in which a rank that waits is usually found; of others the number is shown.
std::string system_call_name(long number) {
  constexpr std::array<std::pair<long, const char*>, 14> kNames{{
      {SYS_futex, "futex"},
      {SYS_read, "read"},
      {SYS_write, "write"},
      {SYS_ppoll, "ppoll"},
      {SYS_pselect6, "pselect6"},
      {SYS_epoll_pwait, "epoll_pwait"},
      {SYS_recvfrom, "recvfrom"},
      {SYS_recvmsg, "recvmsg"},
      {SYS_wait4, "wait4"},
      {SYS_nanosleep, "nanosleep"},
      {SYS_clock_nanosleep, "clock_nanosleep"},
      {SYS_ioctl, "ioctl"},
      {SYS_fsync, "fsync"},
      {SYS_openat, "openat"},
  }};
  for (const auto& [known, name] : kNames) {
    if (known == number) return name;
  }
#ifdef SYS_epoll_wait
  if (number == SYS_epoll_wait) return "epoll_wait";
#endif
#ifdef SYS_pause
  if (number == SYS_pause) return "pause";
#endif
#ifdef SYS_poll
  if (number == SYS_poll) return "poll";
#endif
  return "system call " + std::to_string(number);
}

// `202 0x7f.. ...`, or `running`, or `-1 0x.. 0x..` of one that waits, but in no system call.
std::string system_call_of(pid_t process) {
  const std::string text = read_proc(process, "syscall");
  if (text.starts_with("running")) return "running";
  if (text.empty() || text.starts_with("-1")) return {};
  const long number = std::strtol(text.c_str(), nullptr, 10);
  // A wait that continues after a stop (SIGSTOP, ptrace): the wait channel tells which it is.
  if (number == SYS_restart_syscall) return {};
  return system_call_name(number);
}

// `[<0>] futex_wait_queue+0x63/0x90` a line.
std::vector<std::string> kernel_stack_of(pid_t process) {
  std::vector<std::string> frames;
  const std::string text = read_proc(process, "stack");
  std::string_view rest = text;
  while (!rest.empty() && frames.size() < kKernelFramesMax) {
    std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    line.remove_prefix(std::min(line.find("] ") + 2, line.size()));
    frames.emplace_back(line.substr(0, line.find('+')));
  }
  return frames;
}

/// None when it does something else than wait for children.
std::vector<pid_t> children_it_waits_for(pid_t process, const std::vector<ProcessEntry>& all) {
  std::vector<pid_t> children;
  for (const ProcessEntry& entry : all) {
    if (entry.parent == process && !entry.ended) children.push_back(entry.pid);
  }
  const bool waits = !children.empty() && (read_proc(process, "wchan") == "do_wait" ||
                                           system_call_of(process) == "wait4");
  return waits ? children : std::vector<pid_t>();
}

// Field 52 of /proc/PID/stat, the last one, as wait() has it; 0: success, or not for us to see.
int wait_status_of(pid_t process) {
  const std::string stat = read_proc(process, "stat");
  const auto last = stat.find_last_of(' ');
  return last == std::string::npos ? 0 : std::atoi(stat.c_str() + last);
}

}  // namespace

std::string read_proc(pid_t process, const char* name) {
  const std::string path = "/proc/" + std::to_string(process) + "/" + name;
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return {};
  std::array<char, 4096> text{};
  const ssize_t bytes = ::read(file, text.data(), text.size());
  ::close(file);
  return {text.data(), bytes > 0 ? static_cast<std::size_t>(bytes) : 0};
}

std::vector<std::string> gpus_held_by(pid_t process) {
  std::vector<std::string> held;
  const std::string folder = "/proc/" + std::to_string(process) + "/fd";
  std::error_code why;
  for (std::filesystem::directory_iterator entry(folder, why), end;
       !why && entry != end && held.size() < kDevicesHeldMax; entry.increment(why)) {
    std::error_code unreadable;
    const std::string target = std::filesystem::read_symlink(entry->path(), unreadable).string();
    const bool known = std::find(held.begin(), held.end(), target) != held.end();
    if (target.starts_with("/dev/nvidia") && !known) held.push_back(target);
  }
  return held;
}

ProcessStacks read_state(pid_t process) {
  ProcessStacks facts;
  facts.pid = process;
  const std::string stat = read_proc(process, "stat");
  const auto open = stat.find('(');
  const auto close = stat.rfind(')');
  if (open == std::string::npos || close == std::string::npos || close + 2 >= stat.size()) {
    return facts;
  }
  facts.name = stat.substr(open + 1, close - open - 1);
  facts.state = stat[close + 2];
  facts.wait_channel = read_proc(process, "wchan");
  if (facts.wait_channel == "0") facts.wait_channel.clear();
  return facts;
}

ProcessStacks read_process(pid_t process) {
  ProcessStacks facts = read_state(process);
  if (facts.state == '?') return facts;
  facts.system_call = system_call_of(process);
  facts.kernel = kernel_stack_of(process);
  return facts;
}

bool can_be_traced(const ProcessStacks& process) {
  return process.state == 'R' || process.state == 'S';
}

namespace {

/// Whether a mask of /proc/PID/status has a signal; none: there is no such mask.
std::optional<bool> has_signal(const std::string& status, std::string_view mask, int signal) {
  const auto begin = status.find(mask);
  if (begin == std::string::npos) return std::nullopt;
  const auto bits = std::strtoull(status.c_str() + begin + mask.size(), nullptr, 16);
  return ((bits >> static_cast<unsigned>(signal - 1)) & 1U) != 0;
}

struct Disposition {
  bool is_handled;
  bool is_blocked;
  bool works;  // it is between two waits

  [[nodiscard]] bool may_handle() const { return is_handled || is_blocked; }
};

Disposition look_at(pid_t process, int signal) {
  const std::string status = read_proc(process, "status");
  const bool works = status.find("\nState:\tR") != std::string::npos ||
                     status.find("\nState:\tD") != std::string::npos;
  return {has_signal(status, "\nSigCgt:", signal).value_or(true),
          has_signal(status, "\nSigBlk:", signal).value_or(true), works};
}

}  // namespace

bool may_handle(pid_t process, int signal) {
  return look_at(process, signal).may_handle();
}

bool handles(pid_t process, int signal) {
  constexpr int kLooks = 3;
  constexpr timespec kMoment{0, 1'000'000};
  for (int look = 1;; ++look) {
    const Disposition found = look_at(process, signal);
    if (!found.is_blocked || found.is_handled) return found.is_handled;
    if (!found.works || look == kLooks) return true;
    (void)::nanosleep(&kMoment, nullptr);
  }
}

bool ignores(pid_t process, int signal) {
  return has_signal(read_proc(process, "status"), "\nSigIgn:", signal).value_or(false);
}

bool runs_python(pid_t process) {
  const std::string link = "/proc/" + std::to_string(process) + "/exe";
  std::array<char, 4096> path{};
  const ssize_t bytes = ::readlink(link.c_str(), path.data(), path.size());
  if (bytes <= 0) return false;
  const std::string_view program(path.data(), static_cast<std::size_t>(bytes));
  return program.substr(program.rfind('/') + 1).starts_with("python");
}

std::vector<pid_t> working_processes(pid_t leader, const std::vector<ProcessEntry>& all) {
  std::vector<pid_t> found{leader};
  for (int depth = 0; depth < kWrapperDepthMax; ++depth) {
    std::vector<pid_t> next;
    for (const pid_t process : found) {
      const std::vector<pid_t> children = children_it_waits_for(process, all);
      if (children.empty()) next.push_back(process);
      next.insert(next.end(), children.begin(), children.end());
    }
    if (next.size() > kProcessesPerRankMax) next.resize(kProcessesPerRankMax);
    if (std::exchange(found, next) == next) break;
  }
  return found;
}

std::vector<pid_t> pids_of(const std::vector<ProcessEntry>& processes) {
  std::vector<pid_t> pids;
  for (const ProcessEntry& process : processes) pids.push_back(process.pid);
  return pids;
}

std::vector<EndedChild> ended_children_of(pid_t leader, const std::vector<ProcessEntry>& all) {
  const std::vector<pid_t> living = pids_of(processes_below({leader}, kProcessesOfRankMax));
  std::vector<EndedChild> found;
  for (const ProcessEntry& entry : all) {
    const bool is_its = std::find(living.begin(), living.end(), entry.parent) != living.end();
    if (!entry.ended || !is_its || found.size() == kProcessesOfRankMax) continue;
    const int status = wait_status_of(entry.pid);
    if (status == 0) continue;
    const auto core = WCOREDUMP(status) ? ExitStatus::Core::kDumped : ExitStatus::Core::kNone;
    found.push_back({entry.pid, entry.parent, entry.name,
                     WIFSIGNALED(status) ? ExitStatus::signaled(WTERMSIG(status), core)
                                         : ExitStatus::exited(WEXITSTATUS(status))});
  }
  return found;
}

}  // namespace ddprun
