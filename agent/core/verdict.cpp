#include "agent/core/verdict.hpp"

#include <signal.h>

namespace ddprun {

namespace {

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

Verdict judge(const ExitRecord& record) {
  const ExitStatus& status = record.status;
  if (record.sent_signal != 0) {
    return {Cause::kStopped, "STOP", "was stopped by ddprun (" + status.text() + ")"};
  }
  if (status.success()) return {Cause::kSuccess, "DONE", "ended with exit code 0"};
  if (!status.by_signal()) return {Cause::kExitCode, "W-EXIT", "ended with " + status.text()};
  if (status.signal() == record.passed_signal) {
    return {Cause::kSignal, "W-SIGNAL",
            "died of " + status.text() + ", which ddprun had been sent and passed on"};
  }
  if (status.signal() == SIGKILL) {
    return {Cause::kKilled, "W-KILLED", "received SIGKILL, not sent by ddprun; sender unknown"};
  }
  if (stands_for_a_crash(status.signal())) {
    const std::string code = status.signal() == SIGBUS ? "W-SIGBUS" : "W-CRASH";
    return {Cause::kCrash, code, "died of " + status.text()};
  }
  return {Cause::kSignal, "W-SIGNAL",
          "died of " + status.text() + ", not sent by ddprun; sender unknown"};
}

bool is_failure(const Verdict& verdict) {
  return verdict.cause != Cause::kSuccess && verdict.cause != Cause::kStopped;
}

const ExitRecord* first_failure(const std::vector<ExitRecord>& records) {
  for (const ExitRecord& record : records) {
    if (is_failure(judge(record))) return &record;
  }
  return nullptr;
}

}  // namespace ddprun
