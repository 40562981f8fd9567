// Evidence: what was measured on the host of a worker around its end: memory, limits, disks. Facts
// only; agent/report/verdict.hpp judges them. Plain data: the agent collects it, the wire carries
// it, the report quotes it. Whatever could not be read is absent and never guessed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace ddprun {

/// Bytes, seconds or a count; none: unknown, or for a limit: unlimited.
using Amount = std::optional<std::int64_t>;

/// The kernel's kills for memory, and how much there was.
struct MemoryEvidence {
  // Of the worker's cgroup (v2 memory.events, v1 memory.oom_control): when the round began, and
  // when the worker ended, before ddprun stopped any other.
  Amount kills_before{};
  Amount kills_after{};
  bool kills_cover_subtree = false;  // cgroups below are counted, too (v2)
  // Of the whole host (/proc/vmstat), which may run other jobs.
  Amount host_kills_before{};
  Amount host_kills_after{};
  Amount logged{};  // 1: the kernel's log says that it killed this worker; 0: it does not
  Amount limit{};   // the smallest of the worker's cgroup and of those above it
  Amount peak{};    // of the cgroup with that limit; page cache counts
  Amount host_total{};
  Amount host_available{};  // when the worker ended: what was killed had given its memory back
  Amount worker_peak{};     // resident, of the largest process of the worker
  Amount left_processes{};  // that the worker had started and that still ran
  Amount left_resident{};   // of these together
  friend bool operator==(const MemoryEvidence&, const MemoryEvidence&) = default;
};

/// Soft limits of the worker as it ended, which a script may have changed.
struct LimitEvidence {
  Amount cpu_seconds{};
  Amount file_bytes{};
  Amount processes{};
  Amount descriptors{};
  Amount address_space{};
  Amount core_bytes{};
  Amount cgroup_processes{};  // pids.max: threads and processes of its cgroup
  Amount cpu_used{};          // seconds, by the worker itself
  // Those that ddprun itself does not have so low, by the letters of ulimit: "cv". The program has
  // set them, or a script that starts it.
  std::string lowered{};
  bool known = false;  // then an absent one is unlimited
  friend bool operator==(const LimitEvidence&, const LimitEvidence&) = default;
};

/// One file system that the worker wrote to, or may have.
struct DiskEvidence {
  std::string path{};  // where it was asked
  std::int64_t bytes = 0;
  std::int64_t free_bytes = 0;  // for an ordinary user
  Amount free_files{};          // absent: it has no limit on files
  bool has_streams = false;     // the worker itself writes its stdout or stderr to a file there
  friend bool operator==(const DiskEvidence&, const DiskEvidence&) = default;
};
// File systems of one exit; more are not looked at, a message with more is malformed.
inline constexpr std::size_t kDisksMax = 8;

struct Evidence {
  MemoryEvidence memory{};
  LimitEvidence limits{};
  std::vector<DiskEvidence> disks{};  // /dev/shm first
  std::string core_pattern{};         // /proc/sys/kernel/core_pattern
  // A line of the worker's output that names the cause and is not among those quoted; empty: none.
  std::string telling_line{};
  // Of it and of others: "rank 3 last finished step 1041, others 1042"; empty: none is known.
  std::string steps{};
  bool silent = false;           // nothing to quote, and ddprun does not see all of its output
  bool stderr_unseen = false;    // ddprun does not see its stderr (--console=raw)
  bool lines_of_stdout = false;  // the lines quoted are of standard output: stderr has none
  // It inherited its standard output from ddprun, and no process read that when it ended.
  bool stdout_closed = false;
  bool lines_of_both = false;  // they are of both streams, which had one way to ddprun
  bool stepped = false;        // each rank of its node has finished a step in the round
  friend bool operator==(const Evidence&, const Evidence&) = default;
};

}  // namespace ddprun
