// verdict: what people read about the exit of a worker that failed, derived from its evidence.
// Pure, no thread rule.
#pragma once

#include <string>

#include "base/worker_exit.hpp"

namespace ddprun {

struct Verdict {
  std::string code;    // stable, for tools: "W-EXIT"
  std::string text;    // "ended with exit code 1", follows the name of the rank
  std::string advice;  // what to try; empty: nothing
};

[[nodiscard]] Verdict judge(const WorkerExit& exit);

}  // namespace ddprun
