// Makes the new process in which a worker begins. As cheap as vfork: the child shares our memory
// and we wait until it has executed its program, so the size of the agent does not matter (0.16 ms;
// fork takes 15 ms at 300 MB). clone3 puts it into its cgroup before its first instruction: moving
// it later costs 8 ms and misses what it has started. No launcher of Boost.Process does that, and
// 1.81 leaks descriptors into children. Under a sanitizer, and on processors other than x86-64, the
// child gets a copy of our memory. Thread rule: with all signals blocked; other threads do no harm,
// because the child only runs async-signal-safe code (isolation.hpp).
#pragma once

#include <sys/types.h>

#include "agent/proc/isolation.hpp"

namespace ddprun {

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

}  // namespace ddprun
