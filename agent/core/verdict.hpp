// verdict: from the evidence of an exit to its cause. Pure, no thread rule.
#pragma once

#include <string>
#include <vector>

#include "agent/core/exit_record.hpp"

namespace ddprun {

enum class Cause {
  kSuccess,   // exit code 0
  kStopped,   // ddprun had sent it a signal before it ended: never the cause of anything
  kExitCode,  // ended by itself with another code
  kKilled,    // SIGKILL that ddprun did not send
  kCrash,     // a signal that stands for a bug in native code (SIGSEGV, SIGBUS, SIGFPE, SIGILL,
              // SIGABRT…)
  kSignal,    // any other signal that ddprun did not send, or only passed on
};

struct Verdict {
  Cause cause;
  std::string code;  // stable, for tools: "W-EXIT"
  std::string text;  // "ended with exit code 1", follows the name of the rank
};

[[nodiscard]] Verdict judge(const ExitRecord& record);

/// Whether this exit ends the round: it was neither a success nor ddprun's doing.
[[nodiscard]] bool is_failure(const Verdict& verdict);

/// The record of the rank that failed first, or null. `records` are in the order in which the ends
/// were learned.
[[nodiscard]] const ExitRecord* first_failure(const std::vector<ExitRecord>& records);

}  // namespace ddprun
