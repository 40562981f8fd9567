// ExitStatus: how a process ended; and ExitCode, the exit codes that are ddprun's own. A failed run
// ends with the code of the worker that failed first, so a worker that uses the same number cannot
// be told apart by the code alone: the report can. docs/EXIT_CODES.md has the table for users.
#pragma once

#include <string>

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

// ExitStatus: how a process ended, decoded once from what waitid() reports (si_code and si_status).
// Raw wait statuses are not passed beyond this class.

class ExitStatus {
 public:
  /// The process called exit() with `code` (0..255).
  [[nodiscard]] static ExitStatus exited(int code);
  /// The process was terminated by signal `signal_number`; `core` says whether it dumped core.
  enum class Core { kNone, kDumped };
  [[nodiscard]] static ExitStatus signaled(int signal_number, Core core = Core::kNone);
  /// From siginfo_t's si_code (CLD_EXITED, CLD_KILLED, CLD_DUMPED) and si_status.
  [[nodiscard]] static ExitStatus from_siginfo(int code, int status);

  [[nodiscard]] bool success() const { return signal_ == 0 && code_ == 0; }
  [[nodiscard]] bool by_signal() const { return signal_ != 0; }
  [[nodiscard]] int code() const { return code_; }      // 0 if terminated by a signal
  [[nodiscard]] int signal() const { return signal_; }  // 0 if it exited
  [[nodiscard]] bool dumped_core() const { return core_ == Core::kDumped; }
  /// The code that a shell reports: the exit code, or 128 + signal.
  [[nodiscard]] int shell_code() const {
    return by_signal() ? exit_code_of_signal(signal_) : code_;
  }
  /// "exit code 3", "SIGKILL", "SIGSEGV (core dumped)".
  [[nodiscard]] std::string text() const;

  friend bool operator==(const ExitStatus&, const ExitStatus&) = default;

 private:
  ExitStatus(int code, int signal_number, Core core)
      : code_(code), signal_(signal_number), core_(core) {}
  int code_;
  int signal_;
  Core core_;
};

/// "SIGTERM" for 15; "signal 40" for a number without a name.
[[nodiscard]] std::string signal_name(int signal_number);
/// 15 for "SIGTERM", 0 for an unknown name (exact case, with the SIG).
[[nodiscard]] int signal_number(const std::string& name);

}  // namespace ddprun
