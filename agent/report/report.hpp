// report: the one report of a run that failed. It quotes evidence, and advice follows on a line of
// its own; a rank that ddprun stopped is never blamed. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/worker_exit.hpp"

namespace ddprun {

/// What a worker that failed left in files and pipes.
struct RawEvidence {
  std::optional<std::string> error_json{};  // what it wrote to TORCHELASTIC_ERROR_FILE, if anything
  std::string stderr_tail;  // the last bytes of its standard error, where ddprun saw it
  std::string stdout_tail{};
  bool stderr_has_both = false;  // stdout went the same way, or went on: it is in that tail, too
  bool stdout_unseen = false;    // it goes past ddprun, so that an empty tail says nothing
  bool stderr_unseen = false;
  std::string stdout_log{};  // the log file of its standard output; empty: none
  bool stderr_lost = false;  // not all of it could be written to its log file
  std::string error_file{};  // the path of `error_json`
  bool files_read = true;    // off: a file system did not answer, and the tails may be incomplete
  Evidence facts{};          // what was measured
};
/// Chooses the lines that the report quotes: its error file, its stderr, its stdout. The log that
/// is named has them: that of stderr, which `exit` has, else the error file, or of stdout; none
/// if there is none or it is empty.
void add_evidence(WorkerExit& exit, const RawEvidence& raw);

/// The first line of the report.
[[nodiscard]] std::string failure_headline(const RunFailure& failure);

/// The log file of a rank of this node.
struct RankLog {
  Rank rank{0};
  std::string path{};
};
/// Whether the console of the report has just shown what it would quote.
enum class Shown { kNo, kYes };
/// The report: several lines, the last output of a failed run. A path on another host than
/// `hostname` is preceded by that host. Of a culprit that is none of `logs`, the log of the witness
/// is named. A traceback that was shown is not quoted in full again, unless other ranks failed
/// alike, whose tracebacks were shown with it. `likely` (empty: none) is a reason that was seen
/// before, and replaces what the failure makes likely.
[[nodiscard]] std::string failure_report(const RunFailure& failure, const std::string& hostname,
                                         const std::vector<RankLog>& logs = {},
                                         Shown shown = Shown::kNo, const std::string& likely = "");

}  // namespace ddprun
