// ExitRecord: the evidence of how one worker ended, gathered by the shell and judged by
// verdict.hpp. Plain data, no thread rule.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>

#include "base/clock.hpp"
#include "base/exit_status.hpp"
#include "base/types.hpp"

namespace ddprun {

using WallTime = std::chrono::system_clock::time_point;  // for people to read, never for decisions

struct ExitRecord {
  Rank rank;
  LocalRank local_rank;
  pid_t pid = 0;
  ExitStatus status = ExitStatus::exited(0);
  int sent_signal = 0;     // the first signal that ddprun sent before it ended; 0: none
  int passed_signal = 0;   // the last that ddprun passed on from outside (SIGUSR1...); 0: none
  Duration since_start{};  // of the run
  WallTime when{};
  std::string stderr_tail;  // the last bytes of its standard error, where ddprun saw it
  std::optional<std::string> error_json;  // what it wrote to TORCHELASTIC_ERROR_FILE, if anything
  std::string log;                        // the file its standard error is in; empty: none
  std::string left_behind;  // "2 processes (sh, python3)" of its group that SIGKILL did not end
};

}  // namespace ddprun
