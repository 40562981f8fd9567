// ExitStatus: how a process ended, decoded once from what the kernel says (si_code, si_status of
// waitid). A raw wait status never travels further than this. Plain value, no thread rule.
#pragma once

#include <string>

namespace ddprun {

class ExitStatus {
 public:
  /// Ended by itself with `code` (0..255).
  [[nodiscard]] static ExitStatus exited(int code);
  /// Ended by signal `signal_number`; `dumped_core` as the kernel reports it.
  enum class Core { kNone, kDumped };
  [[nodiscard]] static ExitStatus signaled(int signal_number, Core core = Core::kNone);
  /// From siginfo_t's si_code (CLD_EXITED, CLD_KILLED, CLD_DUMPED) and si_status.
  [[nodiscard]] static ExitStatus from_siginfo(int code, int status);

  [[nodiscard]] bool success() const { return signal_ == 0 && code_ == 0; }
  [[nodiscard]] bool by_signal() const { return signal_ != 0; }
  [[nodiscard]] int code() const { return code_; }      // 0 when ended by a signal
  [[nodiscard]] int signal() const { return signal_; }  // 0 when ended by itself
  [[nodiscard]] bool dumped_core() const { return core_ == Core::kDumped; }
  /// The code a shell would show: the code itself, or 128 + signal.
  [[nodiscard]] int shell_code() const { return by_signal() ? 128 + signal_ : code_; }
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
