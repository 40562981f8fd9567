// report: the one report of a run that failed. Facts (evidence) and guesses (likely) are kept
// apart; a rank that ddprun stopped is never blamed. Pure, no thread rule.
#pragma once

#include <optional>
#include <string>

#include "base/worker_exit.hpp"

namespace ddprun {

/// What a worker that failed left in files and pipes.
struct RawEvidence {
  std::optional<std::string> error_json;  // what it wrote to TORCHELASTIC_ERROR_FILE, if anything
  std::string stderr_tail;  // the last bytes of its standard error, where ddprun saw it
};
/// Chooses the lines that the report quotes.
void add_evidence(WorkerExit& exit, const RawEvidence& raw);

/// The first line of the report.
[[nodiscard]] std::string failure_headline(const RunFailure& failure);
/// The report: several lines, the last thing a failed run prints. Paths of another host than
/// `hostname` are marked.
[[nodiscard]] std::string failure_report(const RunFailure& failure, const std::string& hostname);

}  // namespace ddprun
