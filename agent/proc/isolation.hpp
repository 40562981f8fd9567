// The new process in which a worker begins, and what happens there between fork and exec. As cheap
// as vfork: the child shares our memory and we wait until it has executed its program, so the size
// of the agent does not matter (0.16 ms; fork takes 15 ms at 300 MB). clone3 puts it into its
// cgroup before its first instruction: moving it later costs 8 ms and misses what it has started.
// No launcher of Boost.Process does that, and 1.81 leaks descriptors into children. Under a
// sanitizer, and on processors other than x86-64, the child gets a copy of our memory. The child
// runs only async-signal-safe code: it allocates nothing, and of the parent's memory changes errno
// alone. Thread rule: with all signals blocked; other threads do no harm.
#pragma once

#include <signal.h>
#include <sys/resource.h>
#include <sys/types.h>

#include <cstddef>
#include <cstdint>

namespace ddprun {

/// How far a child came that could not become the worker.
enum class SpawnStage : std::int32_t { kDescriptors, kSession, kParentGone, kAffinity, kExec };

/// What the child writes to its report pipe instead of running the program.
struct SpawnFailure {
  SpawnStage stage;
  std::int32_t error;  // errno
};

/// All a child needs, laid out before the fork.
struct WorkerSetup {
  const char* program;
  const char* const* argv;
  const char* const* environment;
  int stdout_fd;
  int stderr_fd;
  int report_fd;                   // CLOEXEC: closed by a successful exec, written otherwise
  pid_t parent_pid;                // as getpid() said before the fork
  const rlimit* descriptor_limit;  // null: the parent's
  const int* kept;                 // descriptors that stay open, at their numbers
  std::size_t kept_count;
  const unsigned long* cpus;  // the bits of its affinity; null: the parent's
  std::size_t cpus_bytes;
  const sigset_t* ignored;  // signals
};

struct NewProcess {
  pid_t pid = -1;  // -1: none, see errno
  int pidfd = -1;  // CLOEXEC, the caller closes it; -1: the kernel gave none
};

/// A child that becomes the worker.
[[nodiscard]] NewProcess start(const WorkerSetup& setup);
/// The same in the cgroup that `directory` is a descriptor of, from its first instruction on, so
/// that nothing it starts can be elsewhere. The kernel or a sandbox may refuse it for reasons that
/// do not concern start().
[[nodiscard]] NewProcess start_in_cgroup(const WorkerSetup& setup, int directory);

/// Marks every descriptor from 3 up CLOEXEC by reading /proc/self/fd: for kernels and sandboxes
/// without close_range(CLOSE_RANGE_CLOEXEC). Returns false with errno when that cannot be read
/// either.
[[nodiscard]] bool close_on_exec_by_proc() noexcept;

}  // namespace ddprun
