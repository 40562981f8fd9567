#include "launcher/front/supervisor.hpp"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/proc/cgroup.hpp"
#include "agent/proc/leftovers.hpp"
#include "base/exit_status.hpp"
#include "base/limits.hpp"
#include "base/message_line.hpp"
#include "base/process_setup.hpp"
#include "base/signals.hpp"

namespace ddprun::front {

namespace {

// What the agent reported as unkillable is not waited for long again.
constexpr std::chrono::seconds kSweepMaxAfterOrderlyEnd{1};
constexpr int kConsoleWaitMs = 1000;
constexpr std::string_view kColoursOffAndWrap = "\x1b[0m\x1b[?7h";  // as a bar may have left it
// What the agent does at Ctrl-Z before it stops; see kPauseNoteMax.
constexpr std::chrono::seconds kAgentStopMax{2};

/// Brings a terminal to the beginning of a line, whatever a process that was killed had drawn
/// there: spaces for a whole line end on the same one only if they have begun with it.
std::string to_fresh_line() {
  winsize window = {};
  const char* const term = ::getenv("TERM");
  const bool moves = term != nullptr && std::string_view(term) != "dumb";
  if (!moves || ::ioctl(STDERR_FILENO, TIOCGWINSZ, &window) != 0 || window.ws_col == 0) return {};
  return std::string(kColoursOffAndWrap) + std::string(window.ws_col, ' ') + "\r\x1b[K";
}

/// A console that takes nothing costs a bounded wait, then the line is dropped.
void print_line(const std::string& line, const std::string& before = {}) {
  pollfd console{STDERR_FILENO, POLLOUT, 0};
  if (::poll(&console, 1, kConsoleWaitMs) != 1) return;
  const std::string text = before + line + "\n";
  if (::write(STDERR_FILENO, text.data(), text.size()) < 0) return;
}

std::string names_of(const Swept& swept) {
  std::string names;
  for (const ProcessSeen& seen : swept.named) {
    if (seen.pid == 0) break;
    names += (names.empty() ? "" : ", ") + std::string(seen.name.data()) + " (pid " +
             std::to_string(seen.pid) + ", state " + seen.state + ")";
  }
  return names;
}

std::string processes(int count) {
  return std::to_string(count) + (count == 1 ? " process" : " processes");
}

std::string were_ended(int count) {
  return processes(count) + (count == 1 ? " was ended" : " were ended");
}

void report_left(const Swept& swept) {
  if (swept.left == 0) return;
  print_line(error_line("W-UNKILLABLE", processes(swept.left) + " of the run " +
                                            (swept.left == 1 ? "is" : "are") +
                                            " still alive after SIGKILL: " + names_of(swept)));
}

// Where agents listen for commands and workers.
void remove_sockets_of(pid_t agent) {
  const std::string name = "/ddprun-" + std::to_string(::geteuid());
  for (const char* place : {"/dev/shm", "/tmp"}) remove_left_sockets(place + name, agent);
  const char* runtime = ::getenv("XDG_RUNTIME_DIR");
  if (runtime != nullptr) remove_left_sockets(std::string(runtime) + "/ddprun", agent);
}

// Workers of the same user can fill its queue of signals (`ulimit -i`): then nothing can be queued
// for it, but a plain signal still arrives, without its sender.
void queue_or_send(pid_t pid, siginfo_t info, int plain) {
  if (::syscall(SYS_rt_sigqueueinfo, pid, info.si_signo, &info) == 0) return;
  if (errno == EAGAIN) ::kill(pid, plain);
}

bool is_usual_stop(int number) {
  return number == SIGINT || number == SIGTERM || number == SIGHUP || number == SIGQUIT;
}

sigset_t set_of(int number) {
  sigset_t set;
  ::sigemptyset(&set);
  ::sigaddset(&set, number);
  return set;
}

bool is_pending(int number) {
  sigset_t pending;
  return ::sigpending(&pending) == 0 && ::sigismember(&pending, number) == 1;
}

/// The signals of the front. SIGTSTP is only seen here: one that was taken and raised again would
/// discard a SIGCONT that came meanwhile, and the front would stay stopped.
class FrontSignals {
 public:
  explicit FrontSignals(sigset_t taken) : taken_(taken), stops_(open(set_of(SIGTSTP))) {
    ::sigdelset(&taken_, SIGTSTP);
    others_ = open(taken_);
  }
  /// -1: none came, or none in time but for SIGTSTP.
  int next_in(int limit_ms, siginfo_t& info) {
    pollfd ready{others_, POLLIN, 0};
    constexpr timespec kNow = {0, 0};
    return ::poll(&ready, 1, limit_ms) == 1 ? ::sigtimedwait(&taken_, &info, &kNow) : -1;
  }
  int next(siginfo_t& info) {
    if (others_ < 0 || stops_ < 0) return ::sigwaitinfo(&taken_, &info);  // without descriptors
    pollfd ready[] = {{others_, POLLIN, 0}, {stops_, POLLIN, 0}};
    if (::poll(ready, 2, -1) < 0) return -1;
    constexpr timespec kNow = {0, 0};
    if (ready[0].revents != 0) return ::sigtimedwait(&taken_, &info, &kNow);
    info.si_signo = SIGTSTP;
    info.si_code = SI_KERNEL;
    return SIGTSTP;
  }

 private:
  static int open(const sigset_t& set) { return ::signalfd(-1, &set, SFD_CLOEXEC); }

  sigset_t taken_;
  int stops_;
  int others_ = -1;
};

/// Stops this process at the pending SIGTSTP, as a job of its shell. False: the kernel did not,
/// because no shell could continue it (an orphaned process group).
bool stop_as_a_job() {
  const sigset_t stop = set_of(SIGTSTP);
  ::sigprocmask(SIG_UNBLOCK, &stop, nullptr);
  ::sigprocmask(SIG_BLOCK, &stop, nullptr);
  return is_pending(SIGCONT);
}

class Loop {
 public:
  explicit Loop(const Supervised& supervised) : supervised_(supervised) {}
  int run();

 private:
  [[nodiscard]] bool is_guard() const { return supervised_.role == Role::kGuard; }
  void reap();
  void take(int number, const siginfo_t& info);
  void forward(const siginfo_t& info);
  void stop_with_agent(FrontSignals& signals, siginfo_t stop);
  [[nodiscard]] Swept end_all(std::chrono::milliseconds limit) const;
  [[nodiscard]] int end_after(const ExitStatus& status) const;
  [[nodiscard]] int end_without_parent() const;
  void report(const ExitStatus& status, const Swept& swept) const;

  /// Of the agent, in the guard. It stops itself at Ctrl-Z, which the SIGCONT that follows may
  /// overtake: that would be lost.
  enum class Job { kRuns, kStopping, kStopped, kContinued };
  void follow_job(int number);

  const Supervised& supervised_;
  std::optional<ExitStatus> status_;
  Job job_ = Job::kRuns;
  bool agent_stopped_ = false;  // in the front, since the last Ctrl-Z
};

int Loop::run() {
  std::optional<FrontSignals> signals;
  if (!is_guard()) signals.emplace(supervised_.signals);
  while (!status_) {
    siginfo_t info = {};
    const int number = signals ? signals->next(info) : ::sigwaitinfo(&supervised_.signals, &info);
    if (is_guard() && ::getppid() != supervised_.parent) return end_without_parent();
    take(number, info);
    if (number == SIGTSTP && signals) stop_with_agent(*signals, info);
  }
  return end_after(*status_);
}

void Loop::take(int number, const siginfo_t& info) {
  if (number == SIGCHLD) {
    reap();
  } else if (number > 0) {
    forward(info);
  }
}

// After the agent, whose note comes before the prompt of the shell. A SIGCONT takes the SIGTSTP
// back.
void Loop::stop_with_agent(FrontSignals& signals, siginfo_t stop) {
  const auto deadline = std::chrono::steady_clock::now() + kAgentStopMax;
  agent_stopped_ = false;
  while (!status_ && !agent_stopped_ && is_pending(SIGTSTP)) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    if (left.count() <= 0) break;
    siginfo_t info = {};
    take(signals.next_in(static_cast<int>(left.count()), info), info);
  }
  if (status_ || !is_pending(SIGTSTP) || stop_as_a_job()) return;
  stop.si_signo = SIGCONT;
  forward(stop);
}

// Orphans too; what a worker leaves behind while the run lasts is not the front's business. A guard
// that is stopped ends nothing and passes nothing on, so the front continues it at once.
void Loop::reap() {
  constexpr int kChanges = WEXITED | WSTOPPED | WNOHANG | __WALL;
  for (;;) {
    siginfo_t info = {};
    if (::waitid(P_ALL, 0, &info, kChanges) != 0 || info.si_pid == 0) return;
    if (info.si_pid != supervised_.child) continue;
    if (info.si_code == CLD_STOPPED || info.si_code == CLD_TRAPPED) {
      if (!is_guard() || job_ == Job::kContinued) ::kill(supervised_.child, SIGCONT);
      if (is_guard() && job_ == Job::kStopping) {
        info.si_signo = SIGTSTP;
        info.si_pid = ::getpid();
        queue_or_send(supervised_.parent, forwarded_info(info, relay_signal()), 0);
      }
      job_ = job_ == Job::kStopping ? Job::kStopped : Job::kRuns;
      continue;
    }
    status_ = ExitStatus::from_siginfo(info.si_code, info.si_status);
    return;
  }
}

// The front takes every signal and wraps it for the guard. The guard takes only what is wrapped:
// what reaches it directly, because someone signals every process of a control group, reaches the
// front and the agent as well. From the front itself it is what could not be wrapped, but for the
// SIGCONT to a stopped guard. The guard tells the front in the same way that the agent has stopped.
void Loop::forward(const siginfo_t& info) {
  if (!is_guard()) {
    const bool from_guard = info.si_pid == supervised_.child && info.si_signo == relay_signal();
    if (from_guard) agent_stopped_ = true;
    if (from_guard) return;
    return queue_or_send(supervised_.child, forwarded_info(info, relay_signal()), info.si_signo);
  }
  const bool bare = info.si_code == SI_USER && info.si_pid == supervised_.parent;
  const bool wakes_the_guard = info.si_signo == SIGCONT && job_ == Job::kRuns;
  if (bare && !wakes_the_guard) {
    follow_job(info.si_signo);
    ::kill(supervised_.child, info.si_signo);
  }
  const int number = forwarded_number(info.si_code, info.si_value.sival_int);
  if (info.si_signo != relay_signal() || number == 0) return;
  follow_job(number);
  siginfo_t unwrapped = info;
  unwrapped.si_signo = number;
  queue_or_send(supervised_.child, unwrapped, number);
}

void Loop::follow_job(int number) {
  if (number == SIGTSTP) job_ = Job::kStopping;
  if (number == SIGCONT && job_ != Job::kContinued) {
    job_ = job_ == Job::kStopping ? Job::kContinued : Job::kRuns;
  }
}

// No fork escapes the kill of a cgroup.
Swept Loop::end_all(std::chrono::milliseconds limit) const {
  const std::vector<Cgroup> cgroups =
      is_guard() ? run_cgroups_of(supervised_.child) : std::vector<Cgroup>();
  if (!status_) ::kill(supervised_.child, SIGKILL);  // it would start more
  const Swept swept = sweep(supervised_.spared, limit, cgroups);
  for (const Cgroup& cgroup : cgroups) cgroup.remove();
  if (is_guard()) remove_sockets_of(supervised_.child);
  return swept;
}

int Loop::end_after(const ExitStatus& status) const {
  const Swept swept =
      status.by_signal() ? end_all(kSweepMax) : sweep(supervised_.spared, kSweepMaxAfterOrderlyEnd);
  report(status, swept);
  if (status.by_signal()) report_left(swept);  // otherwise the process below has named them
  return status.shell_code();
}

int Loop::end_without_parent() const {
  const Swept swept = end_all(kSweepMax);
  print_line(error_line("FRONT", "ddprun (pid " + std::to_string(supervised_.parent) +
                                     ") was killed; its " + were_ended(swept.ended)),
             to_fresh_line());
  report_left(swept);
  return exit_code_of_signal(SIGKILL);
}

void Loop::report(const ExitStatus& status, const Swept& swept) const {
  if (!status.by_signal()) {
    if (swept.killed == 0) return;
    return print_line(warning_line(
        "CLEANUP", were_ended(swept.killed) + ", left behind by the run: " + names_of(swept)));
  }
  const std::string signal = status.text();
  if (is_usual_stop(status.signal()) && swept.ended == 0) {
    return print_line(note_line(
        "STOP", signal + " before the run began; exit " + std::to_string(status.shell_code())));
  }
  // The agent dies with the guard, and so do its workers: how many were left to end is chance.
  const std::string who = std::string(is_guard() ? "the agent" : "the guard") + " (pid " +
                          std::to_string(supervised_.child) + ")";
  const std::string ended =
      is_guard() ? "its " + were_ended(swept.ended) : std::string("the run's processes were ended");
  print_line(error_line("AGENT", who + " was killed by " + signal + "; " + ended), to_fresh_line());
}

}  // namespace

sigset_t supervised_signals() {
  sigset_t set;
  ::sigfillset(&set);
  for (const int number :
       {SIGTTIN, SIGTTOU, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT}) {
    ::sigdelset(&set, number);
  }
  // What is blocked is delivered although it is ignored: front and guard need these.
  for (int number = 1; number < NSIG; ++number) {
    const bool needed = number == SIGCHLD || number == SIGCONT || number == relay_signal();
    if (!needed && ::sigismember(&ignored_at_start(), number) == 1) ::sigdelset(&set, number);
  }
  return set;
}

int supervise(const Supervised& supervised) {
  return Loop(supervised).run();
}

}  // namespace ddprun::front
