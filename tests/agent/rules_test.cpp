// The rules that decide a life or a death on one node: kill order, verdict.
#include <signal.h>

#include "agent/core/kill_order.hpp"
#include "agent/core/limits.hpp"
#include "agent/core/verdict.hpp"
#include "tests/support/catch.hpp"

using namespace ddprun;
using namespace std::chrono_literals;

namespace {

ExitRecord record(int rank, ExitStatus status, int sent_signal = 0) {
  ExitRecord one;
  one.rank = Rank(rank);
  one.status = status;
  one.sent_signal = sent_signal;
  return one;
}

}  // namespace

TEST_CASE("a stop begins with the signal it was asked for, and the whole grace") {
  const StopOrder order = next_stop_order(StopStage::kNone, {SIGUSR1, 7s});
  CHECK(order.stage == StopStage::kSignalled);
  CHECK(order.signal == SIGUSR1);
  CHECK(order.grace == 7s);
}

TEST_CASE("what the signal did not end is ended by SIGKILL") {
  const StopOrder order = next_stop_order(StopStage::kSignalled, {SIGTERM, 7s});
  CHECK(order.stage == StopStage::kKilled);
  CHECK(order.signal == SIGKILL);
}

TEST_CASE("the wait after SIGKILL is bounded, and then nobody is waited for") {
  CHECK(next_stop_order(StopStage::kSignalled, {SIGTERM, 7s}).grace == kWaitAfterKill);
  const StopOrder order = next_stop_order(StopStage::kKilled, {SIGTERM, 7s});
  CHECK(order.stage == StopStage::kAbandoned);
  CHECK(order.signal == 0);
}

TEST_CASE("an exit code other than 0 is a failure with that code") {
  const Verdict verdict = judge(record(1, ExitStatus::exited(9)));
  CHECK(verdict.cause == Cause::kExitCode);
  CHECK(verdict.code == "W-EXIT");
  CHECK(verdict.text == "ended with exit code 9");
  CHECK(is_failure(verdict));
}

TEST_CASE("a SIGKILL that ddprun did not send has an unknown sender") {
  const Verdict verdict = judge(record(1, ExitStatus::signaled(SIGKILL)));
  CHECK(verdict.cause == Cause::kKilled);
  CHECK(verdict.code == "W-KILLED");
  CHECK(verdict.text == "received SIGKILL, not sent by ddprun; sender unknown");
}

TEST_CASE("a crash is told from a signal that somebody sent") {
  CHECK(judge(record(0, ExitStatus::signaled(SIGSEGV))).code == "W-CRASH");
  CHECK(judge(record(0, ExitStatus::signaled(SIGABRT))).code == "W-CRASH");
  CHECK(judge(record(0, ExitStatus::signaled(SIGBUS))).code == "W-SIGBUS");
  CHECK(judge(record(0, ExitStatus::signaled(SIGTERM))).code == "W-SIGNAL");
  CHECK(judge(record(0, ExitStatus::signaled(SIGSEGV, ExitStatus::Core::kDumped))).text ==
        "died of SIGSEGV (core dumped)");
}

TEST_CASE("a worker that dies of a signal which ddprun passed on is told so") {
  ExitRecord one = record(0, ExitStatus::signaled(SIGUSR1));
  CHECK(judge(one).text == "died of SIGUSR1, not sent by ddprun; sender unknown");
  one.passed_signal = SIGUSR1;
  CHECK(judge(one).text == "died of SIGUSR1, which ddprun had been sent and passed on");
  CHECK(is_failure(judge(one)));
}

TEST_CASE("a rank that ddprun stopped is never a cause, however it ended") {
  for (const auto status : {ExitStatus::exited(1), ExitStatus::signaled(SIGTERM),
                            ExitStatus::signaled(SIGKILL), ExitStatus::exited(0)}) {
    const Verdict verdict = judge(record(0, status, SIGTERM));
    CHECK(verdict.cause == Cause::kStopped);
    CHECK_FALSE(is_failure(verdict));
  }
}

TEST_CASE("the rank that failed first is the first of those that failed by themselves") {
  const std::vector<ExitRecord> records{
      record(0, ExitStatus::exited(0)), record(2, ExitStatus::exited(5)),
      record(1, ExitStatus::signaled(SIGTERM), SIGTERM), record(3, ExitStatus::exited(1))};
  REQUIRE(first_failure(records) != nullptr);
  CHECK(first_failure(records)->rank == Rank(2));
}

TEST_CASE("where all were stopped nobody failed first") {
  CHECK(first_failure({record(0, ExitStatus::signaled(SIGTERM), SIGTERM)}) == nullptr);
  CHECK(first_failure({}) == nullptr);
}
