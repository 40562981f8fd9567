// What happens in a new process between fork and exec: it becomes a worker. Everything here is
// async-signal-safe and works in a vfork'ed child too: nothing is allocated, nothing of the
// parent's memory is changed but errno. Thread rule: only in a child process.
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

/// Makes the calling process the leader of an own POSIX session with a parent-death signal,
/// descriptors 0, 1, 2 only, default signal dispositions but for what it ignores, an empty mask,
/// its own limit on descriptors and its own affinity, and executes the program. On failure
/// writes a SpawnFailure and _exits: no exit handler, no flush of the parent's buffers.
[[noreturn]] void become_worker(const WorkerSetup& setup) noexcept;

/// Marks every descriptor from 3 up CLOEXEC by reading /proc/self/fd: for kernels and sandboxes
/// without close_range(CLOSE_RANGE_CLOEXEC). Returns false with errno when that cannot be read
/// either.
[[nodiscard]] bool close_on_exec_by_proc() noexcept;

}  // namespace ddprun
