#include "launcher/front/front.hpp"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "base/exit_status.hpp"
#include "base/process_setup.hpp"
#include "base/signals.hpp"
#include "launcher/front/supervisor.hpp"

namespace ddprun {

namespace {

constexpr std::size_t kWaiterStackBytes = 64 * 1024;

bool become_subreaper(bool on) {
  return ::prctl(PR_SET_CHILD_SUBREAPER, on ? 1UL : 0UL) == 0;
}

/// Over the command line that ps and `pkill -f` read.
void write_title(int argc, char** argv, const std::string& title) {
  if (argc < 1) return;
  char* const begin = argv[0];
  char* const end = argv[argc - 1] + ::strlen(argv[argc - 1]);
  std::fill(begin, end, '\0');
  const auto room = static_cast<std::size_t>(end - begin);
  std::copy_n(title.begin(), std::min(title.size(), room), begin);
}

/// Children that an earlier program of this process left to it (`tensorboard & exec ddprun ...`).
front::Spared strangers() {
  front::Spared spared;
  spared.own_session = true;
  siginfo_t info = {};
  if (::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0) return spared;  // none
  front::ProcessTree tree;
  if (!tree.read({})) return spared;
  for (const front::ProcessSeen& seen : tree) {
    if (seen.parent != ::getpid() || spared.count == spared.children.size()) continue;
    spared.children[spared.count++] = seen.pid;
  }
  return spared;
}

pid_t guard_pid = 0;  // for the handler

// In the agent: both supervisors may be gone, so nothing else would end what its workers started.
// The event loop may be stuck, therefore a handler.
extern "C" void end_without_guard(int) {
  if (::getppid() == guard_pid) return;
  (void)front::sweep({}, front::kSweepMax);
  ::_exit(exit_code_of_signal(SIGKILL));
}

/// False when the parent has ended already.
bool follow_parent(pid_t parent, int number) {
  ::prctl(PR_SET_PDEATHSIG, number);
  return ::getppid() == parent;
}

/// A stopped process acts on no signal before SIGCONT, and the kernel sends one signal for each
/// thread when the parent ends: this one asks for SIGCONT. All signals are blocked in it.
void* wait_for_continuation(void*) {
  ::prctl(PR_SET_PDEATHSIG, SIGCONT);
  for (;;) ::pause();
}

/// A process without it runs as well; only one that is stopped outlives its supervisors then.
void continue_when_parent_ends() {
  sigset_t all;
  sigset_t before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_attr_t attributes;
  ::pthread_attr_init(&attributes);
  ::pthread_attr_setstacksize(&attributes, kWaiterStackBytes);
  pthread_t thread{};
  if (::pthread_create(&thread, &attributes, wait_for_continuation, nullptr) == 0) {
    ::pthread_detach(thread);
  }
  ::pthread_attr_destroy(&attributes);
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

int become_agent(const sigset_t& mask, const std::function<int()>& agent) {
  ::setsid();
  guard_pid = ::getppid();
  struct sigaction action = {};
  action.sa_handler = end_without_guard;
  ::sigfillset(&action.sa_mask);
  ::sigaction(relay_signal(), &action, nullptr);
  continue_when_parent_ends();
  sigset_t restored = mask;
  ::sigdelset(&restored, relay_signal());
  ::sigprocmask(SIG_SETMASK, &restored, nullptr);
  if (!follow_parent(guard_pid, relay_signal())) ::_exit(exit_code_of_signal(SIGKILL));
  return agent();
}

int become_guard(int argc, char** argv, pid_t parent, const sigset_t& taken, const sigset_t& mask,
                 const std::function<int()>& agent) {
  ::setsid();
  // SIGCONT, because it also wakes a guard that is stopped (SIGSTOP).
  if (!follow_parent(parent, SIGCONT)) ::_exit(exit_code_of_signal(SIGKILL));
  const bool subreaper = become_subreaper(true);
  const pid_t child = subreaper ? ::fork() : -1;
  if (child <= 0) return become_agent(mask, agent);
  ::prctl(PR_SET_NAME, kGuardName);
  write_title(argc, argv, std::string(kGuardName) + " of " + std::to_string(parent));
  front::Supervised supervised;
  supervised.role = front::Role::kGuard;
  supervised.child = child;
  supervised.parent = parent;
  supervised.signals = taken;
  ::_exit(front::supervise(supervised));
}

}  // namespace

int run_below_front(int argc, char** argv, const std::function<int()>& agent) {
  static_cast<void>(ignored_at_start());
  ::signal(SIGCHLD, SIG_DFL);  // statuses are lost where it is ignored
  const sigset_t taken = front::supervised_signals();
  sigset_t mask;
  ::sigprocmask(SIG_SETMASK, &taken, &mask);
  const pid_t self = ::getpid();
  const front::Spared spared = strangers();
  const pid_t child = become_subreaper(true) ? ::fork() : -1;
  if (child == 0) return become_guard(argc, argv, self, taken, mask, agent);
  if (child < 0) {
    become_subreaper(false);
    ::sigprocmask(SIG_SETMASK, &mask, nullptr);
    return agent();
  }
  front::Supervised supervised;
  supervised.child = child;
  supervised.signals = taken;
  supervised.spared = spared;
  ::_exit(front::supervise(supervised));
}

}  // namespace ddprun

namespace ddprun::front {

namespace {

constexpr std::size_t kLineBytesMax = 4096;

pid_t background_pid = 0;  // for the handler

extern "C" void pass_to_background(int number) {
  ::kill(background_pid, number);
}

void become_background(int console) {
  ::setsid();
  const int nothing = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  ::dup2(nothing, STDIN_FILENO);
  ::dup2(console, STDOUT_FILENO);
  ::dup2(console, STDERR_FILENO);
  if (nothing > STDERR_FILENO) ::close(nothing);
  if (console > STDERR_FILENO) ::close(console);
}

std::string first_line(int pipe) {
  std::string line;
  std::array<char, 256> piece{};
  while (line.size() < kLineBytesMax && line.find('\n') == std::string::npos) {
    const ssize_t count = ::read(pipe, piece.data(), piece.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return {};
    line.append(piece.data(), static_cast<std::size_t>(count));
  }
  return line.substr(0, line.find('\n'));
}

int wait_for(pid_t process) {
  siginfo_t info = {};
  while (::waitid(P_PID, static_cast<id_t>(process), &info, WEXITED) != 0) {
    if (errno != EINTR) return 1;
  }
  return ExitStatus::from_siginfo(info.si_code, info.si_status).shell_code();
}

}  // namespace

Background go_to_background(int console) {
  std::array<int, 2> pipe{};
  Background result;
  result.is_parent = true;
  if (::pipe2(pipe.data(), O_CLOEXEC) != 0) return result;
  background_pid = ::fork();
  if (background_pid < 0) return result;
  if (background_pid == 0) {
    ::close(pipe[0]);
    become_background(console);
    result.is_parent = false;
    result.started = pipe[1];
    return result;
  }
  result.process = background_pid;
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    const bool ignored = ::sigismember(&ignored_at_start(), number) == 1;
    if (!ignored) ::signal(number, pass_to_background);
  }
  ::close(pipe[1]);
  ::close(console);
  result.line = first_line(pipe[0]);
  if (result.line.empty()) result.exit_code = wait_for(background_pid);
  return result;
}

}  // namespace ddprun::front
