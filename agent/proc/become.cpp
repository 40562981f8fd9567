#include "agent/proc/become.hpp"

#include <errno.h>
#include <linux/sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cstdint>

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

#ifdef DDPRUN_SHARED_MEMORY

[[noreturn]] void become_on_own_stack(const WorkerSetup* setup) {
  become_worker(*setup);
}

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
      : "D"(&arguments), "S"(sizeof arguments), "b"(&become_on_own_stack), "d"(&setup)
      : "rcx", "r11", "cc", "memory");
  if (result >= 0) return static_cast<pid_t>(result);
  errno = static_cast<int>(-result);
  return -1;
}

#endif

}  // namespace

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
