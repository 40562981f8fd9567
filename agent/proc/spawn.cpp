#include "agent/proc/spawn.hpp"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <boost/asio/detail/throw_error.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/process/v2/process.hpp>

#include <boost/process/v2/posix/vfork_launcher.hpp>
#include <optional>

#include "agent/proc/isolation.hpp"
#include "agent/proc/spawn_error.hpp"

namespace ddprun {
namespace {

namespace asio = boost::asio;
namespace process = boost::process::v2;

/// The launcher's hook between fork and exec. It executes the program itself and never returns, so
/// nothing of Boost.Process runs in the child after it: not its walk over /proc, not its exit().
struct BecomeWorker {
  const WorkerSetup& setup;

  template <class Launcher, class Path, class Argv>
  boost::system::error_code on_exec_setup(Launcher& /*launcher*/, const Path& /*program*/,
                                          const Argv& /*argv*/) const {
    become_worker(setup);
  }
};

/// Keeps signals from running this process's handlers in the child, whose pipes they would write
/// to.
class SignalBlock {
 public:
  SignalBlock() {
    sigset_t all;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalBlock() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalBlock(const SignalBlock&) = delete;
  SignalBlock& operator=(const SignalBlock&) = delete;

 private:
  sigset_t before_ = {};
};

/// The pipe that a successful exec closes and a failed one fills.
class ReportPipe {
 public:
  ReportPipe() : error_(::pipe2(ends_, O_CLOEXEC) == 0 ? 0 : errno) {}
  ~ReportPipe() {
    close_end(0);
    close_end(1);
  }
  ReportPipe(const ReportPipe&) = delete;
  ReportPipe& operator=(const ReportPipe&) = delete;

  [[nodiscard]] int error() const { return error_; }
  [[nodiscard]] int write_end() const { return ends_[1]; }
  /// Blocks until the child executed or gave up; that it does either is sure, it runs no code but
  /// ours.
  [[nodiscard]] std::optional<SpawnFailure> read() {
    close_end(1);
    SpawnFailure failure = {};
    ssize_t bytes = 0;
    do {
      bytes = ::read(ends_[0], &failure, sizeof failure);
    } while (bytes < 0 && errno == EINTR);
    if (bytes != sizeof failure) return std::nullopt;
    return failure;
  }

 private:
  void close_end(int index) {
    if (ends_[index] >= 0) ::close(ends_[index]);
    ends_[index] = -1;
  }
  int ends_[2] = {-1, -1};
  int error_;
};

/// Makes sure that Boost.Process finds the descriptors it opens after the fork (a pidfd, and a
/// reactor for it): when the reactor fails it leaks the pidfd. No other thread takes them
/// meanwhile, there is one thread. Returns 0 or errno.
int reserve_descriptors(int any_open) {
  std::array<int, 6> reserved{};
  reserved.fill(-1);
  int error = 0;
  for (int& descriptor : reserved) {
    descriptor = ::fcntl(any_open, F_DUPFD_CLOEXEC, 0);
    if (descriptor < 0) error = errno;
    if (error != 0) break;
  }
  for (const int descriptor : reserved) {
    if (descriptor >= 0) ::close(descriptor);
  }
  return error;
}

std::vector<const char*> pointers(const std::vector<std::string>& texts) {
  std::vector<const char*> result;
  result.reserve(texts.size() + 1);
  for (const std::string& text : texts) result.push_back(text.c_str());
  result.push_back(nullptr);
  return result;
}

void kill_and_reap(pid_t pid) {
  if (pid <= 0) return;
  ::kill(pid, SIGKILL);
  while (::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) continue;
}

struct Launched {
  pid_t pid = -1;
  int error = 0;
};

/// Through Boost.Process, with a context of its own: the launcher tells the context about the fork,
/// and in 1.81 the child's share of that would rebuild the agent's own reactor, in memory both
/// have.
Launched launch(const std::string& program, std::vector<const char*>& argv,
                const WorkerSetup& setup) {
  Launched result;
  process::posix::vfork_launcher launcher;
  try {
    asio::io_context own;
    boost::system::error_code why;
    const SignalBlock no_handlers;
    auto started = launcher(own.get_executor(), why, program, argv.data(), BecomeWorker{setup});
    if (why) result.error = why.value();
    if (!why) result.pid = launcher.pid;
    started.detach();  // its destructor would kill and wait
  } catch (
      const boost::system::system_error& error) {  // started, but no descriptor left to watch it
    kill_and_reap(launcher.pid);
    result.error = error.code().value();
  }
  return result;
}

Result<Child> watch(asio::any_io_executor executor, pid_t pid, const std::string& program) {
  const auto pidfd = static_cast<int>(::syscall(SYS_pidfd_open, pid, 0));
  int error = errno;
  if (pidfd >= 0) {
    try {
      return Child(std::move(executor), pid, pidfd);
    } catch (const boost::system::system_error& why) {
      error = why.code().value();
    }
  }
  kill_and_reap(pid);
  return system_refused("cannot watch " + program, error);
}

}  // namespace

Result<Child> spawn(asio::any_io_executor executor, const SpawnRequest& request) {
  ReportPipe report;
  int error = report.error();
  if (error == 0) error = reserve_descriptors(report.write_end());
  if (error != 0) return system_refused("cannot start " + request.program, error);
  std::vector<const char*> argv = pointers(request.argv);
  const std::vector<const char*> environment = pointers(request.environment);
  const WorkerSetup setup{request.program.c_str(),
                          argv.data(),
                          environment.data(),
                          request.stdout_fd,
                          request.stderr_fd,
                          report.write_end(),
                          ::getpid(),
                          request.descriptor_limit ? &*request.descriptor_limit : nullptr};
  const Launched launched = launch(request.program, argv, setup);
  if (launched.pid < 0) return system_refused("cannot start " + request.program, launched.error);
  if (const auto failure = report.read()) {
    kill_and_reap(launched.pid);
    return spawn_error(request.program, *failure);
  }
  return watch(std::move(executor), launched.pid, request.program);
}

}  // namespace ddprun
