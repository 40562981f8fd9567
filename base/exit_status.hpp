// ExitStatus: how a process ended, decoded once from what waitid() reports (si_code and si_status).
// Raw wait statuses are not passed beyond this class.
#pragma once

#include <string>

#include "base/exit_code.hpp"

namespace ddprun {

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
