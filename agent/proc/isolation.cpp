#include "agent/proc/isolation.hpp"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cstddef>

// A sanitizer's runtime knows no second stack, and no third architecture was tried: there the child
// has a copy of our memory, as with fork.
#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#if !defined(__has_feature)
#define DDPRUN_SHARED_MEMORY 1
#elif !__has_feature(address_sanitizer) && !__has_feature(thread_sanitizer)
#define DDPRUN_SHARED_MEMORY 1
#endif
#endif

namespace ddprun {
namespace {

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

// The leader of an own POSIX session with a parent-death signal, descriptors 0, 1, 2 and those
// kept, default signal dispositions but for what it ignores, an empty mask, its own limit on
// descriptors and its own affinity executes the program. On failure writes a SpawnFailure and
// _exits: no exit handler, no flush of the parent's buffers.
[[noreturn]] void become_worker(const WorkerSetup& setup) noexcept {
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

#ifdef DDPRUN_SHARED_MEMORY

// The C library has no function for clone3, and syscall() returns twice, which two processes with
// one memory survive only on two stacks.
pid_t clone3_sharing_memory(clone_args& arguments, const WorkerSetup& setup) {
  alignas(16) static std::array<char, 64 * 1024> stack;  // one child at a time: we wait for it
  arguments.flags |= CLONE_VM | CLONE_VFORK;
  arguments.stack = reinterpret_cast<std::uintptr_t>(stack.data());
  arguments.stack_size = stack.size();
  long result = SYS_clone3;
  __asm__ volatile(
      "syscall\n\t"
      "test %%rax, %%rax\n\t"
      "jnz 1f\n\t"
      "xor %%ebp, %%ebp\n\t"
      "mov %%rdx, %%rdi\n\t"
      "call *%%rbx\n\t"
      "hlt\n"
      "1:"
      : "+a"(result)
      : "D"(&arguments), "S"(sizeof arguments), "b"(&become_worker), "d"(&setup)
      : "rcx", "r11", "cc", "memory");
  if (result >= 0) return static_cast<pid_t>(result);
  errno = static_cast<int>(-result);
  return -1;
}

#endif

}  // namespace

bool close_on_exec_by_proc() noexcept {
  const int directory = ::open("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (directory < 0) return false;
  // As readdir(3) has them, which allocates.
  alignas(dirent64) std::array<char, 4096> buffer{};
  long bytes = 0;
  while ((bytes = ::syscall(SYS_getdents64, directory, buffer.data(), buffer.size())) > 0) {
    for (long at = 0; at < bytes;) {
      const auto* entry = reinterpret_cast<const dirent64*>(buffer.data() + at);
      const int number = descriptor_number(entry->d_name);
      if (number > 2) ::fcntl(number, F_SETFD, FD_CLOEXEC);
      at += entry->d_reclen;
    }
  }
  ::close(directory);
  return bytes == 0;
}

NewProcess start(const WorkerSetup& setup) {
  NewProcess process;
  process.pid = ::vfork();
  if (process.pid == 0) become_worker(setup);
  return process;
}

NewProcess start_in_cgroup(const WorkerSetup& setup, int directory) {
  NewProcess process;
  clone_args arguments = {};
  arguments.flags = CLONE_INTO_CGROUP | CLONE_PIDFD;
  arguments.pidfd = reinterpret_cast<std::uintptr_t>(&process.pidfd);
  arguments.exit_signal = SIGCHLD;
  arguments.cgroup = static_cast<std::uint64_t>(directory);
#ifdef DDPRUN_SHARED_MEMORY
  process.pid = clone3_sharing_memory(arguments, setup);
#else
  process.pid = static_cast<pid_t>(::syscall(SYS_clone3, &arguments, sizeof arguments));
  if (process.pid == 0) become_worker(setup);
#endif
  return process;
}

}  // namespace ddprun
