// WorkerExit: how one worker ended, with its evidence. The agent fills it when it learns of the
// exit, the wire carries it, the report prints it. What people read about it (verdict, advice,
// source of the evidence) is derived where it is printed: agent/report/report.hpp. Plain data, and
// the rule for who failed first.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "base/evidence.hpp"
#include "base/exit_status.hpp"
#include "base/rank_facts.hpp"
#include "base/types.hpp"

namespace ddprun {

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
