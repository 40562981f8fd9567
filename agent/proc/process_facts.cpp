#include "agent/proc/process_facts.hpp"

#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <ctime>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "agent/proc/files.hpp"

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

ExitStatus decoded(int wait_status) {
  if (WIFEXITED(wait_status)) return ExitStatus::exited(WEXITSTATUS(wait_status));
  return ExitStatus::signaled(WTERMSIG(wait_status), WCOREDUMP(wait_status)
                                                         ? ExitStatus::Core::kDumped
                                                         : ExitStatus::Core::kNone);
}

constexpr std::size_t kFlags = 9;
constexpr std::size_t kWaitStatus = 52;  // 0: success, or not for us to see
constexpr long long kExiting = 0x4;      // PF_EXITING of the kernel

/// As waitpid() will have it; none: it has not begun to exit.
std::optional<int> status_if_exiting(std::string_view text) {
  const Stat stat(text);
  if (stat.fields() < kWaitStatus || (stat[kFlags] & kExiting) == 0) return std::nullopt;
  return static_cast<int>(stat[kWaitStatus]);
}

bool any_thread_is_stuck(pid_t process) {
  const std::vector<pid_t> threads = threads_of(process);
  return std::any_of(threads.begin(), threads.end(), [process](pid_t thread) {
    return Stat(read_proc(process, "task/" + std::to_string(thread) + "/stat")).state() == 'D';
  });
}

/// Whether a mask of /proc/PID/status has a signal; none: there is no such mask.
std::optional<bool> has_signal(const std::string& status, std::string_view mask, int signal) {
  const auto value = value_of(status, mask);
  if (!value) return std::nullopt;
  const auto bits = std::strtoull(std::string(*value).c_str(), nullptr, 16);
  return ((bits >> static_cast<unsigned>(signal - 1)) & 1U) != 0;
}

/// From the line `State: S (sleeping)` of /proc/PID/status.
char state_in(const std::string& status) {
  const std::string_view state = value_of(status, "State:").value_or("");
  return state.empty() ? '?' : state.front();
}

struct Disposition {
  bool is_handled;
  bool is_blocked;
  bool works;  // it is between two waits
};

Disposition look_at(pid_t process, int signal) {
  const std::string status = read_proc(process, "status");
  const char state = state_in(status);
  return {has_signal(status, "SigCgt:", signal).value_or(true),
          has_signal(status, "SigBlk:", signal).value_or(true), state == 'R' || state == 'D'};
}

// With a limit of 1 the kernel also gives no core to a program that collects them, which has 0
// ignored.
bool forbid_core(pid_t process) {
  rlimit core = {};
  if (::prlimit(process, RLIMIT_CORE, nullptr, &core) != 0) return false;
  core.rlim_cur = core.rlim_max = std::min<rlim_t>(core.rlim_max, 1);
  return ::prlimit(process, RLIMIT_CORE, &core, nullptr) == 0;
}

}  // namespace

std::vector<std::string> gpus_held_by(pid_t process) {
  std::vector<std::string> held;
  for_each_entry("/proc/" + std::to_string(process) + "/fd", [&](const dirent& entry) {
    const std::string target = link_of(process, std::string("fd/") + entry.d_name);
    const bool known = std::find(held.begin(), held.end(), target) != held.end();
    if (target.starts_with("/dev/nvidia") && !known) held.push_back(target);
    return held.size() < kDevicesHeldMax;
  });
  return held;
}

ProcessStacks read_state(pid_t process) {
  ProcessStacks facts;
  facts.pid = process;
  const std::string text = read_proc(process, "stat");
  const Stat stat(text);
  facts.name = stat.name();
  facts.state = stat.state();
  if (facts.state != '?') facts.wait_channel = read_proc(process, "wchan");
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

bool may_handle(pid_t process, int signal) {
  const Disposition found = look_at(process, signal);
  return found.is_handled || found.is_blocked;
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
  return has_signal(read_proc(process, "status"), "SigIgn:", signal).value_or(false);
}

bool runs_python(pid_t process) {
  const std::string program = link_of(process, "exe");
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
    const auto status = static_cast<int>(Stat(read_proc(entry.pid, "stat"))[kWaitStatus]);
    if (status == 0) continue;
    found.push_back({entry.pid, entry.parent, entry.name, decoded(status)});
  }
  return found;
}

std::optional<ExitStatus> parse_exiting(std::string_view stat) {
  const int status = status_if_exiting(stat).value_or(0);
  return status == 0 ? std::nullopt : std::optional(decoded(status));
}

bool is_exiting_with_0(pid_t process) {
  return status_if_exiting(read_proc(process, "stat")) == 0;
}

std::optional<ExitStatus> status_of_exiting(pid_t process) {
  const auto status = parse_exiting(read_proc(process, "stat"));
  if (!status || any_thread_is_stuck(process)) return std::nullopt;
  return status;
}

bool abort_with_python_stacks(pid_t process) {
  const std::string status = read_proc(process, "status");
  const char state = state_in(status);
  const bool acts = state == 'R' || state == 'S';
  if (!acts || !has_signal(status, "SigCgt:", SIGABRT).value_or(false)) return false;
  return runs_python(process) && forbid_core(process) && ::kill(process, SIGABRT) == 0;
}

}  // namespace ddprun
