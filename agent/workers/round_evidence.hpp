// RoundEvidence: collects what is known around the first failure of a round. Counters that others
// move are read when the round begins and at the exit, before any other worker is signalled, in far
// less than a millisecond; files, and file systems if the output complains of one, on the thread
// for log files, in bounded time. Thread rule: the io_context's thread. Ownership: a job that a
// file system holds up is left to itself.
#pragma once

#include <sys/resource.h>

#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "agent/output/output.hpp"
#include "agent/output/output_plan.hpp"
#include "agent/proc/child.hpp"
#include "agent/proc/descendants.hpp"
#include "agent/proc/evidence.hpp"
#include "agent/report/report.hpp"
#include "base/environment.hpp"
#include "net/disk_thread.hpp"

namespace ddprun {

class RoundEvidence {
 public:
  /// `descriptor_limit` is that of the workers; none: that of this process.
  RoundEvidence(DiskThread disk, const Environment& environment,
                const std::optional<rlimit>& descriptor_limit);

  /// Reads the counters as they are when the round begins, later, beside the first spawns.
  void begin();
  /// Of a worker that has just failed, while no other was signalled.
  [[nodiscard]] Evidence measure(const Child& failed, const WorkerOutputPlan& plan,
                                 const Descendants& left) const;
  /// The same of one that exits, and has left nothing: its memory is not known.
  [[nodiscard]] Evidence measure_exiting(const Child& failed, const WorkerOutputPlan& plan) const;

  struct Sources {
    std::string error_file;
    WorkerOutputPlan plan;
    std::string stdout_tail;  // what passed through ddprun
    std::string stderr_tail;
    bool of_both = false;  // that is of both streams, see WorkerOutput::LastWords
    std::string log_directory;
    Evidence facts;  // of measure()
    int pid = 0;
    ExitStatus status = ExitStatus::exited(1);
  };
  /// What the files say, with what was measured. Completes within kEvidenceMax.
  [[nodiscard]] boost::asio::awaitable<RawEvidence> look(Sources sources);

 private:
  /// Adds which of them the program has lowered.
  [[nodiscard]] LimitEvidence compared(LimitEvidence worker) const;

  DiskThread disk_;
  std::string tmpdir_;
  std::optional<rlimit> descriptor_limit_;
  std::shared_ptr<std::optional<MemoryBaseline>> baseline_;
};

}  // namespace ddprun
