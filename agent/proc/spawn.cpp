#include "agent/proc/spawn.hpp"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <optional>

#include "agent/proc/isolation.hpp"
#include "agent/proc/program.hpp"

namespace ddprun {
namespace {

namespace asio = boost::asio;

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

std::vector<const char*> pointers(const std::vector<std::string>& texts) {
  std::vector<const char*> result;
  result.reserve(texts.size() + 1);
  for (const std::string& text : texts) result.push_back(text.c_str());
  result.push_back(nullptr);
  return result;
}

/// As the kernel takes a set of CPUs: bit n of the words is CPU n.
std::vector<unsigned long> bits_of(const CpuSet& cpus) {
  constexpr std::size_t kBits = 8 * sizeof(unsigned long);
  if (cpus.empty()) return {};
  std::vector<unsigned long> words(static_cast<std::size_t>(*cpus.rbegin()) / kBits + 1);
  for (const int cpu : cpus) {
    const auto bit = static_cast<std::size_t>(cpu);
    words[bit / kBits] |= 1UL << bit % kBits;
  }
  return words;
}

void kill_and_reap(pid_t pid) {
  ::kill(pid, SIGKILL);
  while (::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) continue;
}

struct Launched {
  NewProcess process;
  std::optional<Cgroup> leaf;  // where it was started
  int error = 0;
};

/// Into its cgroup if there is one and the kernel agrees; what it refuses there is tried without.
Launched launch(const WorkerSetup& setup, const std::optional<Cgroup>& leaf) {
  const SignalBlock no_handlers;
  Launched result;
  const int directory = leaf ? leaf->open() : -1;
  if (directory >= 0) {
    result.process = start_in_cgroup(setup, directory);
    if (result.process.pid > 0) result.leaf = leaf;
    ::close(directory);
  }
  if (result.process.pid < 0) result.process = start(setup);
  if (result.process.pid < 0) result.error = errno;
  return result;
}

/// Takes the process over, or ends it.
Result<Child> watch(asio::any_io_executor executor, Launched launched, const std::string& program) {
  NewProcess& process = launched.process;
  if (process.pidfd < 0) {
    process.pidfd = static_cast<int>(::syscall(SYS_pidfd_open, process.pid, 0));
  }
  // Before Linux 5.3, and in sandboxes: then SIGCHLD tells of its end.
  const bool without = process.pidfd < 0 && (errno == ENOSYS || errno == EPERM);
  int error = errno;
  if (process.pidfd >= 0 || without) {
    try {
      return Child(std::move(executor), process.pid, process.pidfd, std::move(launched.leaf));
    } catch (const boost::system::system_error& why) {
      error = why.code().value();
    }
  }
  kill_and_reap(process.pid);
  return system_refused("cannot watch " + program, error);
}

}  // namespace

Result<Child> spawn(asio::any_io_executor executor, const SpawnRequest& request) {
  ReportPipe report;
  if (report.error() != 0) {
    return system_refused("cannot start " + request.program, report.error());
  }
  std::vector<const char*> argv = pointers(request.argv);
  const std::vector<const char*> environment = pointers(request.environment);
  const std::vector<unsigned long> cpus = bits_of(request.cpus);
  const WorkerSetup setup{request.program.c_str(),
                          argv.data(),
                          environment.data(),
                          request.stdout_fd,
                          request.stderr_fd,
                          report.write_end(),
                          ::getpid(),
                          request.descriptor_limit ? &*request.descriptor_limit : nullptr,
                          request.kept.data(),
                          request.kept.size(),
                          cpus.empty() ? nullptr : cpus.data(),
                          cpus.size() * sizeof(unsigned long),
                          &request.ignored};
  Launched launched = launch(setup, request.leaf);
  if (launched.process.pid < 0) {
    return system_refused("cannot start " + request.program, launched.error);
  }
  if (const auto failure = report.read()) {
    if (launched.process.pidfd >= 0) ::close(launched.process.pidfd);
    kill_and_reap(launched.process.pid);
    return spawn_error(request.program, *failure);
  }
  return watch(std::move(executor), std::move(launched), request.program);
}

}  // namespace ddprun
