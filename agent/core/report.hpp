// report: every message of the agent as text, and the one report of a run that failed. Facts
// (evidence) and guesses (likely) are kept apart; a rank that ddprun stopped is never blamed. Pure,
// no thread rule.
#pragma once

#include <string>
#include <vector>

#include "agent/core/exit_record.hpp"
#include "base/clock.hpp"
#include "base/types.hpp"

namespace ddprun {

struct StartFacts {
  std::string version;
  RunId run;
  Round round{1};
  int workers = 1;
  std::string store;    // "127.0.0.1:41207"; empty: worker 0 has its own
  std::string log_dir;  // empty: no files
  Duration shutdown_timeout{};
  int max_restarts = 0;
};
/// One line: `ddprun 0.1 run 7f3a round 1: 16 ranks ...`.
[[nodiscard]] std::string start_line(const StartFacts& facts);

/// `rank 12 (local 4, pid 48213) on gpu-02`: who, everywhere a worker is named.
struct Who {
  Rank rank;
  LocalRank local_rank;
  int pid = 0;
  std::string host;
};
[[nodiscard]] std::string who(const Who& worker);
[[nodiscard]] std::string who(const ExitRecord& record, const std::string& host);

/// One line for a worker that failed while others were still there or a restart follows.
[[nodiscard]] std::string death_line(const ExitRecord& record, const std::string& host, int others);

/// One line of a single node: `restart 1 of 3, round 2`, which the run says.
[[nodiscard]] std::string restart_line(const std::string& text);

/// One line for a stop that a signal to ddprun ordered; `others` workers are stopped.
[[nodiscard]] std::string stop_line(int signal, int workers, Duration shutdown_timeout);
/// What came of the ranks that ddprun stopped.
struct StopFacts {
  int gone = 0;        // those that ended by themselves before are not among them
  int killed = 0;      // of these, the ones that needed SIGKILL
  int unkillable = 0;  // still alive
  Duration took{};     // from the first stop signal until no rank was waited for any more
};
/// One line when that stop is over.
[[nodiscard]] std::string stopped_line(int signal, const StopFacts& stop);

/// One line: `done: all 16 ranks exited with code 0 after 3 h 12 min; 0 restarts`.
[[nodiscard]] std::string done_line(int workers, Duration took, RestartCount restarts);

/// "2 processes (sh, python3)".
[[nodiscard]] std::string left_behind_text(const std::vector<std::string>& names);
/// What a worker left in its process group when it ended.
struct LeftBehindFacts {
  std::string who;
  std::vector<std::string> names;  // of its processes that live
  int signal = 0;                  // that they get now; 0: they are waited for
  Duration since_exit{};
  Duration timeout{};  // --straggler-timeout
};
[[nodiscard]] std::string left_behind_line(const LeftBehindFacts& facts);

/// One line for a worker that SIGKILL did not end, or for what such a one left behind.
[[nodiscard]] std::string unkillable_line(const ExitRecord& record, const std::string& host);

struct FailureFacts {
  // Of the rank that failed first, as text; empty: nothing to say.
  std::string code;                   // "W-EXIT"
  std::string who;                    // "rank 12 (local 4, pid 48213) on gpu-02"
  std::string verdict;                // "ended with exit code 1"
  std::string when;                   // "11:02:41.118Z, 3 h 12 min after start"
  std::string source;                 // what the evidence is: "last lines of its stderr"
  std::vector<std::string> evidence;  // lines
  std::string advice;
  std::string log;
  // Of the run.
  Round round{1};
  int stopped = 0;  // ranks that ddprun stopped because of it
  int killed = 0;   // of these, the ones that needed SIGKILL
  Duration stop_took{};
  std::string next;  // why there is no restart; empty: nothing to say
};
/// What one exit says by itself.
[[nodiscard]] FailureFacts facts_of(const ExitRecord& record, const std::string& host);
/// The first line of the report.
[[nodiscard]] std::string failure_headline(const FailureFacts& facts);
/// The report: several lines, the last thing a failed run prints.
[[nodiscard]] std::string failure_report(const FailureFacts& facts);

/// `ddprun: error [EXEC] sentence`: a worker could not be started.
[[nodiscard]] std::string spawn_failure_line(Rank rank, const std::string& host,
                                             const std::string& sentence);

}  // namespace ddprun
