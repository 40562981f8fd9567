#include "agent/core/verdict.hpp"

#include <signal.h>

namespace ddprun {

namespace {

constexpr const char* kCrashAdvice =
    "PYTHONFAULTHANDLER=1 for the Python stack; ulimit -c unlimited for a core dump";

/// Whether the signal stands for a bug in native code.
bool stands_for_a_crash(int signal) {
  switch (signal) {
    case SIGSEGV:
    case SIGBUS:
    case SIGFPE:
    case SIGILL:
    case SIGABRT:
    case SIGSYS:
    case SIGTRAP:
      return true;
    default:
      return false;
  }
}

}  // namespace

Verdict judge(const WorkerExit& exit) {
  const ExitStatus& status = exit.status;
  if (!status.by_signal()) return {"W-EXIT", "ended with " + status.text(), ""};
  if (status.signal() == exit.passed_signal) {
    return {"W-SIGNAL", "died of " + status.text() + ", which ddprun had been sent and passed on",
            ""};
  }
  if (status.signal() == SIGKILL) {
    return {"W-KILLED", "received SIGKILL, not sent by ddprun; sender unknown", ""};
  }
  if (stands_for_a_crash(status.signal())) {
    return {status.signal() == SIGBUS ? "W-SIGBUS" : "W-CRASH", "died of " + status.text(),
            status.dumped_core() ? "" : kCrashAdvice};
  }
  return {"W-SIGNAL", "died of " + status.text() + ", not sent by ddprun; sender unknown", ""};
}

}  // namespace ddprun
