// ExitCode: the exit codes that are ddprun's own. A failed run ends with the code of the worker
// that failed first, so a worker that uses the same number cannot be told apart by the code alone:
// the report can. docs/EXIT_CODES.md has the table for users.
#pragma once

namespace ddprun {

enum ExitCode : int {
  kExitSuccess = 0,
  kExitFailure = 1,  // an error of ddprun or of this machine
  kExitUsage = 2,
  kExitJoinTimeout = 110,      // fewer than MIN nodes, or no coordinator, within join_timeout
  kExitRefused = 111,          // the coordinator refused this node
  kExitNodeLost = 112,         // nodes left or were lost, and fewer than MIN came back in time
  kExitCoordinatorLost = 113,  // no coordinator for coordinator_timeout, after the start
  kExitHang = 114,             // --hang-timeout ended the run
  kExitFinishTimeout = 115,    // --finish-timeout ended the run
  kExitUnkillable = 116,       // a worker survived SIGKILL, and this node can start no other
  kExitSleep = 117,            // a worker was in uninterruptible sleep for too long
  kExitNotExecutable = 126,
  kExitNotFound = 127,
  kExitSignalBase = 128,
};

/// The code of a shell for a process that signal `signal` ended.
[[nodiscard]] constexpr int exit_code_of_signal(int signal) {
  return kExitSignalBase + signal;
}

}  // namespace ddprun
