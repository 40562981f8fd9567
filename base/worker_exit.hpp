// WorkerExit: how one worker ended, with its Evidence: what was measured on its host around that
// end, and what it said. Plain data, and the rule for who failed first: the agent fills it when it
// learns of the exit, the wire carries it, the report prints it. Whatever could not be read is
// absent and never guessed. agent/report judges it: verdict, advice and the source of the evidence
// are derived where they are printed.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "base/exit_status.hpp"
#include "base/rank_facts.hpp"
#include "base/types.hpp"

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

/// Names one worker process for people.
struct WorkerName {
  Rank rank{0};
  LocalRank local_rank{0};
  int pid = 0;
  std::string host{};
  friend bool operator==(const WorkerName&, const WorkerName&) = default;
};

/// What the lines of evidence are.
enum class EvidenceSource : std::uint8_t {
  kStderr,         // the end of its standard error
  kErrorFile,      // what it wrote to TORCHELASTIC_ERROR_FILE
  kTornErrorFile,  // that was truncated: the end of its standard error
};

struct WorkerExit {
  WorkerName worker{};
  ExitStatus status = ExitStatus::exited(1);
  int passed_signal = 0;  // passed on from outside (SIGUSR1...): what explains the end; 0: none
  WallTime when{};        // by the clock of its host
  std::chrono::milliseconds since_start{0};  // of ddprun on its host
  std::chrono::milliseconds after{0};  // since all workers of its node run; before, since the first
  EvidenceSource source = EvidenceSource::kStderr;
  std::vector<std::string> lines{};  // of evidence, at most kReportLinesMax
  std::string log{};                 // path on its host; empty: none
  Evidence evidence{};
  std::optional<Complaint> complaint{};  // about other ranks: then it is a witness
  // Why ddprun gave up the ranks of its node although none had failed; then this is no exit: the
  // worker is the first of those in question, the status has the code of the run.
  std::optional<Finding> given_up{};
  bool in_grace = false;  // after the order to stop, before any signal: what it says may follow
  bool is_slow = false;   // it had raised what `lines` say, and ended when it was stopped
  friend bool operator==(const WorkerExit&, const WorkerExit&) = default;
};

/// Why a run failed: the exit that was first, and what followed from it.
struct RunFailure {
  WorkerExit first{};
  Round round{0};                          // in which it failed
  int stopped = 0;                         // ranks that were still running and were stopped
  int killed = 0;                          // of these, the ones that needed SIGKILL
  int alike = 0;                           // ranks that failed in the same way, `first` not counted
  std::string also{};                      // another failure, which was not alike; empty: none
  std::chrono::milliseconds stop_took{0};  // by the node that took longest
  std::string no_restart{};                // why no restart followed; empty: nothing to say
  std::optional<Finding> finding{};        // about the culprit, if `first` is a witness
  std::string repeated{};                  // rounds in a row that ended alike; empty: none
  std::string no_retry{};                  // the rule by which it was not tried again; empty: none
  std::chrono::milliseconds spared{0};     // that those stopped had before, to end by themselves
  friend bool operator==(const RunFailure&, const RunFailure&) = default;
};

/// The exit code of a run whose first failure this is.
[[nodiscard]] int exit_code_of_run(const ExitStatus& first_failure);

/// The line of its evidence that says most about why it ended; of ranks that were given up, why.
/// Empty: nothing is known.
[[nodiscard]] std::string telling_line(const WorkerExit& exit);
/// What it has in common with those that failed alike (base/ending.hpp). Empty: nothing is known.
[[nodiscard]] std::string likeness_of(const WorkerExit& exit);
/// Whether two workers failed in the same way: the same status and the same likeness but for its
/// numbers (ranks, pids, devices). One that is not known differs from all others.
[[nodiscard]] bool is_alike(const ExitStatus& status, std::string_view likeness,
                            const ExitStatus& other, std::string_view other_likeness);

/// An exit as the rule for the first failure sees it.
struct ExitOrder {
  TimePoint at{};  // on the clock of the process that compares
  ExitStatus status = ExitStatus::exited(1);
  int sent_signal = 0;  // by ddprun, before it ended; 0: none
};
/// The one rule for who failed first, among the workers of a node and among the nodes of a run: the
/// earliest exit that was neither a success nor ordered by ddprun; at the same time, the one that
/// was learned first. Whether `exit` replaces the first failure known so far, which was at `first`
/// (none: there was none).
[[nodiscard]] bool is_first_failure(const ExitOrder& exit, const std::optional<TimePoint>& first);

}  // namespace ddprun
