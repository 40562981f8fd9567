// The rules that decide a life or a death on one node: kill order, verdict.
#include <signal.h>

#include "agent/node/kill_order.hpp"
#include "agent/report/verdict.hpp"
#include "base/limits.hpp"
#include "base/pipe_end.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/sentences.hpp"

using namespace ddprun;
using namespace ddprun::test;
using namespace std::chrono_literals;

namespace {

WorkerExit ended(const ExitStatus& status) {
  WorkerExit exit;
  exit.status = status;
  return exit;
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

TEST_CASE("before SIGKILL a stop that wants stacks has a bounded moment, unless it has no grace") {
  const StopOrder order = next_stop_order(StopStage::kSignalled, {SIGTERM, 7s, true});
  CHECK(order.stage == StopStage::kAsked);
  CHECK(order.grace == kStacksBeforeKill);
  CHECK(next_stop_order(StopStage::kAsked, {SIGTERM, 7s, true}).stage == StopStage::kKilled);
  CHECK(next_stop_order(StopStage::kSignalled, {SIGTERM, 0s, true}).stage == StopStage::kKilled);
}

TEST_CASE("SIGKILL reaches workers first, and a moment later what may tidy up behind them") {
  CHECK(next_stop_order(StopStage::kSignalled, {SIGTERM, 7s}).grace == kPipeEndWait);
  const StopOrder order = next_stop_order(StopStage::kKilled, {SIGTERM, 7s});
  CHECK(order.stage == StopStage::kSwept);
  CHECK(order.signal == SIGKILL);
}

TEST_CASE("a failure that ends the run has a time before the first signal, unless that is 0") {
  const StopOrder order = next_stop_order(StopStage::kNone, {SIGTERM, 7s, true, 1s});
  CHECK(order.stage == StopStage::kSpared);
  CHECK(order.signal == 0);
  CHECK(order.grace == 1s);
  const StopOrder next = next_stop_order(StopStage::kSpared, {SIGTERM, 7s, true, 1s});
  CHECK(next.stage == StopStage::kSignalled);
  CHECK(next.grace == 7s);
}

TEST_CASE("the wait after SIGKILL is bounded, and then no worker is waited for") {
  CHECK(next_stop_order(StopStage::kKilled, {SIGTERM, 7s}).grace == kWaitAfterKill);
  const StopOrder order = next_stop_order(StopStage::kSwept, {SIGTERM, 7s});
  CHECK(order.stage == StopStage::kAbandoned);
  CHECK(order.signal == 0);
}

TEST_CASE("an exit code other than 0 is a failure with that code") {
  const Verdict verdict = judge(ended(ExitStatus::exited(9)));
  CHECK(verdict.code == "W-EXIT");
  CHECK(verdict.text == "ended with exit code 9");
  CHECK(verdict.advice.empty());
}

TEST_CASE("a SIGKILL that ddprun did not send has an unknown sender") {
  const Verdict verdict = judge(ended(ExitStatus::signaled(SIGKILL)));
  CHECK(verdict.code == "W-KILLED");
  CHECK(verdict.text == "received SIGKILL, not sent by ddprun; sender unknown");
}

TEST_CASE("a crash is told from a signal that another process sent") {
  CHECK(judge(ended(ExitStatus::signaled(SIGSEGV))).code == "W-CRASH");
  CHECK(judge(ended(ExitStatus::signaled(SIGABRT))).code == "W-CRASH");
  CHECK(judge(ended(ExitStatus::signaled(SIGBUS))).code == "W-SIGBUS");
  CHECK(judge(ended(ExitStatus::signaled(SIGTERM))).code == "W-SIGNAL");
  CHECK(judge(ended(ExitStatus::signaled(SIGSEGV, ExitStatus::Core::kDumped))).text ==
        "died of SIGSEGV (core dumped)");
}

TEST_CASE("a worker that dies of a signal which ddprun passed on is told so") {
  WorkerExit exit = ended(ExitStatus::signaled(SIGUSR1));
  CHECK(judge(exit).text == "died of SIGUSR1" + kSenderUnknown);
  exit.passed_signal = SIGUSR1;
  CHECK(judge(exit).text == "died of SIGUSR1" + kPassedOn);
}
