// Starts one worker. Thread rule: call on the io_context's thread, whose end ends the worker.
#pragma once

#include <sys/resource.h>

#include <boost/asio/any_io_executor.hpp>
#include <optional>
#include <string>
#include <vector>

#include "agent/proc/cgroup.hpp"
#include "agent/proc/child.hpp"
#include "agent/proc/numa.hpp"
#include "base/process_setup.hpp"
#include "base/result.hpp"

namespace ddprun {

struct SpawnRequest {
  std::string program;                   // absolute path, see program.hpp
  std::vector<std::string> argv;         // argv[0] included
  std::vector<std::string> environment;  // "NAME=value", the complete environment
  int stdout_fd = 1;                     // what the worker gets as 1 and 2; stays the caller's
  int stderr_fd = 2;
  std::optional<rlimit> descriptor_limit = {};  // none: that of this process
  std::optional<Cgroup> leaf = {};              // to start it in, if the kernel allows that
  std::vector<int> kept = {};                   // descriptors that it gets besides 0, 1 and 2
  CpuSet cpus = {};                             // its affinity; empty: that of this process
  sigset_t ignored = ignored_at_start();        // signals that it ignores
};

/// Forks and executes. The worker is the leader of its own POSIX session, gets SIGKILL when the
/// agent dies, has descriptors 0, 1, 2 and `kept` only, default signal dispositions but for
/// `ignored`, and an empty mask; stdin, working directory, umask and limits (but
/// for that on descriptors, if one is given) are inherited. Returns after exec succeeded. Errors:
/// kNotFound and kNotExecutable with path and reason (not found, not executable, missing
/// interpreter), kSystem when the kernel refused a process or a descriptor. No error leaves a
/// zombie, a running process or a descriptor behind.
[[nodiscard]] Result<Child> spawn(boost::asio::any_io_executor executor,
                                  const SpawnRequest& request);

}  // namespace ddprun
