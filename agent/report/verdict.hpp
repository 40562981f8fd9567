// verdict: what people read about the exit of a worker that failed, derived from its evidence.
// What is measured and what is guessed are kept apart. The codes are listed in docs/REPORT.md.
// Pure.
#pragma once

#include <string>
#include <vector>

#include "base/worker_exit.hpp"

namespace ddprun {

struct Verdict {
  std::string code;                     // stable, for tools: "W-EXIT"
  std::string text;                     // "ended with exit code 1", follows the name of the rank
  std::vector<std::string> evidence{};  // measured, one fact a line
  std::string likely{};                 // a guess; empty: none
  std::string advice{};                 // what to try; empty: nothing
  /// kNode: the command or its node is at fault, whichever rank met it first; `text` is a whole
  /// sentence then.
  enum class Subject { kRank, kNode };
  Subject subject = Subject::kRank;
};

[[nodiscard]] Verdict judge(const WorkerExit& exit);

/// The same while the other ranks are being stopped: of one that only waited for others or lost the
/// connection to one it says that, with the code that the report will have. The cause is not known
/// yet.
[[nodiscard]] Verdict judge_at_once(const WorkerExit& exit);

/// Who or where, and what: "rank 12 (local 4, pid 48213) on gpu-02 ended with exit code 1".
[[nodiscard]] std::string sentence_of(const WorkerExit& exit, const Verdict& verdict);

/// A line of `tail`, the end of a worker's output, that names the cause although the lines that a
/// report quotes do not: NCCL's own warning, or the rank that a launcher inside the worker names.
/// Empty: none.
[[nodiscard]] std::string find_telling_line(const std::string& tail,
                                            const std::vector<std::string>& quoted);

}  // namespace ddprun
