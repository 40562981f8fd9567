// evidence: what the host says around the end of a worker. Counters that other workers move as well
// are read when the round begins and when the worker ends, before any other is signalled: a few
// small files of /proc and of the cgroup, which never wait for a disk. What lies on disks is asked
// on the thread for files. Whatever cannot be read is absent. Thread rule: none; only system calls.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>
#include <vector>

#include "base/worker_exit.hpp"

namespace ddprun {

/// The cgroup that counts kills for memory, and the counters when the round began.
struct MemoryBaseline {
  std::vector<std::string> memory_folders{};  // the cgroup of ddprun first, then those above it
  std::vector<std::string> process_folders{};
  bool covers_subtree = false;
  Amount kills{};
  Amount host_kills{};
};
[[nodiscard]] MemoryBaseline read_memory_baseline();
/// The counters now, with those of the baseline. `leaf`: the cgroup v2 that the worker alone had,
/// new when it started; empty: none. What the kernel killed there was of this worker.
[[nodiscard]] MemoryEvidence read_memory(const MemoryBaseline& baseline, const std::string& leaf);
/// The limit of the cgroup on threads and processes, the smallest of those above it.
[[nodiscard]] Amount read_process_limit(const MemoryBaseline& baseline);

/// Whether the kernel's log says that it killed this process for memory in the last minute: 1 or 0;
/// absent where the log cannot be read, or has other numbers for processes (a PID namespace). Costs
/// a system call for each record of the log.
[[nodiscard]] Amount read_kernel_log(pid_t process);

/// The limits of a process, and the processor time that it used itself. Also of one that has ended
/// and was not reaped: the kernel keeps both until then.
[[nodiscard]] LimitEvidence read_limits(pid_t process);
/// The same, from the text of /proc/PID/limits.
[[nodiscard]] LimitEvidence parse_limits(std::string_view text);
/// Which limits of a worker are lower than those that it was started with, `own`: see
/// LimitEvidence::lowered.
[[nodiscard]] std::string lowered_limits(const LimitEvidence& worker, const LimitEvidence& own);

/// The file systems of these paths, each once, in this order. Blocks as long as they do.
[[nodiscard]] std::vector<DiskEvidence> read_disks(const std::vector<std::string>& paths);
/// Absolute paths that the output of a worker quotes ('/data/x'), the last ones first.
[[nodiscard]] std::vector<std::string> quoted_paths(std::string_view output);

[[nodiscard]] std::string read_core_pattern();

}  // namespace ddprun
