#include "agent/proc/isolation.hpp"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cstddef>

namespace ddprun {
namespace {

// The layout of getdents64(2), which the C library does not declare without a DIR (and that
// allocates).
struct DirectoryEntry {
  std::uint64_t inode;
  std::int64_t offset;
  std::uint16_t length;
  std::uint8_t type;
  char name[1];
};

void reset_signal_dispositions(const sigset_t& ignored) {
  for (int number = 1; number < NSIG; ++number) {
    struct sigaction action = {};
    action.sa_handler = ::sigismember(&ignored, number) == 1 ? SIG_IGN : SIG_DFL;
    ::sigaction(number, &action,
                nullptr);  // fails for SIGKILL, SIGSTOP and libc's own: they are default
  }
}

bool mark_others_close_on_exec() {
  if (::syscall(SYS_close_range, 3U, ~0U, CLOSE_RANGE_CLOEXEC) == 0) return true;
  return close_on_exec_by_proc();
}

// Puts the worker's streams on 1 and 2, in whatever order they stand now.
bool arrange_descriptors(const WorkerSetup& setup) {
  int err = setup.stderr_fd;
  if (err == STDOUT_FILENO) {
    err = ::fcntl(err, F_DUPFD_CLOEXEC, 3);
    if (err < 0) return false;
  }
  if (::dup2(setup.stdout_fd, STDOUT_FILENO) < 0) return false;
  if (::dup2(err, STDERR_FILENO) < 0) return false;
  for (int descriptor = 0; descriptor <= 2; ++descriptor) {
    ::fcntl(descriptor, F_SETFD, 0);  // dup2 onto itself keeps CLOEXEC; a closed stdin stays closed
  }
  if (!mark_others_close_on_exec()) return false;
  for (std::size_t i = 0; i < setup.kept_count; ++i) ::fcntl(setup.kept[i], F_SETFD, 0);
  return true;
}

[[noreturn]] void fail(int report_fd, SpawnStage stage) {
  const SpawnFailure failure{stage, errno};
  if (::write(report_fd, &failure, sizeof failure) < 0) ::_exit(126);
  ::_exit(127);
}

int descriptor_number(const char* name) {
  int number = 0;
  for (; *name >= '0' && *name <= '9'; ++name) number = number * 10 + (*name - '0');
  return *name == '\0' ? number : -1;
}

}  // namespace

bool close_on_exec_by_proc() noexcept {
  const int directory = ::open("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (directory < 0) return false;
  alignas(DirectoryEntry) std::array<char, 4096> buffer{};
  long bytes = 0;
  while ((bytes = ::syscall(SYS_getdents64, directory, buffer.data(), buffer.size())) > 0) {
    for (long at = 0; at < bytes;) {
      const char* entry = buffer.data() + at;
      std::uint16_t length = 0;
      ::memcpy(&length, entry + offsetof(DirectoryEntry, length), sizeof length);
      const int number = descriptor_number(entry + offsetof(DirectoryEntry, name));
      if (number > 2) ::fcntl(number, F_SETFD, FD_CLOEXEC);
      at += length;
    }
  }
  ::close(directory);
  return bytes == 0;
}

void become_worker(const WorkerSetup& setup) noexcept {
  reset_signal_dispositions(*setup.ignored);
  if (::setsid() < 0) fail(setup.report_fd, SpawnStage::kSession);
  if (::prctl(PR_SET_PDEATHSIG, SIGKILL) < 0) fail(setup.report_fd, SpawnStage::kSession);
  // The signal is not sent when the parent died before the call above.
  if (::getppid() != setup.parent_pid) fail(setup.report_fd, SpawnStage::kParentGone);
  // Where Yama lets only ancestors trace, a child of the agent reads the stacks (ddprun-stacks).
  ::prctl(PR_SET_PTRACER, setup.parent_pid);
  if (!arrange_descriptors(setup)) fail(setup.report_fd, SpawnStage::kDescriptors);
  if (setup.descriptor_limit != nullptr) ::setrlimit(RLIMIT_NOFILE, setup.descriptor_limit);
  if (setup.cpus != nullptr &&
      ::sched_setaffinity(0, setup.cpus_bytes, reinterpret_cast<const cpu_set_t*>(setup.cpus)) !=
          0) {
    fail(setup.report_fd, SpawnStage::kAffinity);
  }
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::execve(setup.program, const_cast<char* const*>(setup.argv),
           const_cast<char* const*>(setup.environment));
  fail(setup.report_fd, SpawnStage::kExec);
}

}  // namespace ddprun
