#include "base/exit_status.hpp"

#include <signal.h>
#include <string.h>

#include "base/assert.hpp"

namespace ddprun {

ExitStatus ExitStatus::exited(int code) {
  DDPRUN_ASSERT(code >= 0 && code <= 255);
  return {code, 0, Core::kNone};
}

ExitStatus ExitStatus::signaled(int number, Core core) {
  DDPRUN_ASSERT(number > 0);
  return {0, number, core};
}

ExitStatus ExitStatus::from_siginfo(int code, int status) {
  if (code == CLD_EXITED) return exited(status & 0xff);
  return signaled(status, code == CLD_DUMPED ? Core::kDumped : Core::kNone);
}

std::string ExitStatus::text() const {
  if (!by_signal()) return "exit code " + std::to_string(code_);
  return signal_name(signal_) + (dumped_core() ? " (core dumped)" : "");
}

std::string signal_name(int number) {
  const char* name = sigabbrev_np(number);
  if (name == nullptr) return "signal " + std::to_string(number);
  return std::string("SIG") + name;
}

int signal_number(const std::string& name) {
  for (int number = 1; number < NSIG; ++number) {
    if (signal_name(number) == name) return number;
  }
  return 0;
}

}  // namespace ddprun
