// Round after round fails in the same way: recognized, said, and with --min-uptime the end.
#include "rendezvous/round/restarts.hpp"

#include "tests/round/desk.hpp"
#include "tests/support/catch.hpp"

using namespace ddprun;
using namespace ddprun::round;
using namespace ddprun::protocol;

namespace {

WorkerExit failed_with(int code, const std::string& line, int rank = 0) {
  WorkerExit exit;
  exit.status = ExitStatus::exited(code);
  exit.worker.rank = Rank(rank);
  exit.lines = {"Traceback (most recent call last):", line};
  return exit;
}

/// One node whose rounds fail `lived` after its workers run.
class Failing {
 public:
  Failing(int restarts, std::optional<Milliseconds> min_uptime) {
    Hello hello = desk_.hello("a", 1, 1);
    hello.terms.max_restarts = restarts;
    hello.terms.min_uptime = min_uptime;
    desk_.say(1, hello);
  }
  void fail(const WorkerExit& exit, Duration lived) {
    desk_.say(1, desk_.report(round_, NodeState::kRunning));
    desk_.beat_for(lived, {1});
    Report failed = desk_.report(round_, NodeState::kFailed);
    failed.failure = exit;
    desk_.say(1, failed);
    desk_.say(1, Stopped{Round(round_), milliseconds(1), 0, 0});
    desk_.beat_for(kRestartDelayMax, {1});
    ++round_;
  }
  std::optional<Done> done() { return desk_.last<Done>(1); }

 private:
  Desk desk_;
  int round_ = 1;
};

}  // namespace

TEST_CASE("rounds with different exceptions differ, whatever libraries print after them") {
  const auto failure_of = [](const std::string& exception, const std::string& after) {
    WorkerExit exit = failed_with(1, exception);
    exit.lines.push_back(after);
    return exit;
  };
  const std::string hydra =
      "Set the environment variable HYDRA_FULL_ERROR=1 for a complete stack trace.";
  for (const std::string& after :
       {hydra, std::string("wandb: Find logs at: ./wandb/run-123/logs")}) {
    CAPTURE(after);
    RepeatedFailure failure;
    failure.failed(failure_of("ConnectionError: s3: shard 17 timed out", after), Round(1),
                   seconds(1), kEarlyFailureMax);
    failure.failed(failure_of("KeyError: 'label'", after), Round(2), seconds(1), kEarlyFailureMax);
    CHECK(failure.count() == 1);
    failure.failed(failure_of("KeyError: 'label'", "wandb: synced"), Round(3), seconds(1),
                   kEarlyFailureMax);
    CHECK(failure.count() == 2);
    CHECK_THAT(failure.sentence(), ContainsSubstring("exit code 1, \"KeyError: 'label'\""));
  }
}

TEST_CASE("of workers whose stderr is not seen an exit code alone makes no two rounds alike") {
  WorkerExit exit;
  exit.status = ExitStatus::exited(1);
  exit.evidence.stderr_unseen = true;
  RepeatedFailure failure;
  failure.failed(exit, Round(1), seconds(1), kEarlyFailureMax);
  failure.failed(exit, Round(2), seconds(1), kEarlyFailureMax);
  CHECK(failure.count() == 1);
  exit.evidence.stderr_unseen = false;  // it said nothing
  failure.failed(exit, Round(3), seconds(1), kEarlyFailureMax);
  CHECK(failure.count() == 2);
}

TEST_CASE("rounds that ended alike are named with the exit and the telling line") {
  RepeatedFailure failure;
  failure.failed(failed_with(1, "KeyError: 'x'"), Round(1), seconds(1), kEarlyFailureMax);
  CHECK(failure.sentence().empty());
  failure.failed(failed_with(1, "KeyError: 'x'"), Round(2), seconds(2), kEarlyFailureMax);
  CHECK(failure.sentence() ==
        "rounds 1 and 2 ended alike within 2 s of their start: rank 0, exit code 1, "
        "\"KeyError: 'x'\"");
  failure.failed(failed_with(1, "KeyError: 'x'", 3), Round(3), seconds(1), kEarlyFailureMax);
  CHECK(failure.sentence() ==
        "rounds 1 to 3 ended alike within 2 s of their start: exit code 1, \"KeyError: 'x'\"");
  failure.failed(failed_with(1, "KeyError: 'x'", 3), Round(5), seconds(1), kEarlyFailureMax);
  CHECK(failure.sentence().rfind("4 of the rounds 1 to 5 ended alike", 0) == 0);
}

TEST_CASE("rounds that were given up in the same way are told with the reason, not with a rank") {
  WorkerExit hang;
  hang.status = ExitStatus::exited(114);
  hang.given_up = Finding{"HANG", "no rank has made progress for 4 s", {1}, {}, "", ""};
  WorkerExit finish = hang;
  finish.given_up->text = "rank 1 has not finished for 4 s";
  RepeatedFailure failure;
  failure.failed(hang, Round(1), seconds(5), kEarlyFailureMax);
  failure.failed(hang, Round(2), seconds(5), kEarlyFailureMax);
  CHECK(failure.sentence() ==
        "rounds 1 and 2 ended alike within 5 s of their start: no rank has made progress for 4 s");
  failure.failed(finish, Round(3), seconds(5), kEarlyFailureMax);
  CHECK(failure.count() == 1);
  failure.failed(failed_with(114, finish.given_up->text), Round(4), seconds(5), kEarlyFailureMax);
  CHECK(failure.count() == 1);
}

TEST_CASE("another exit, another telling line or a long life is another failure") {
  const WorkerExit first = failed_with(1, "address 10.0.0.1:4711 in use");
  for (const auto& [second, lived, alike] :
       {std::tuple(failed_with(1, "address 10.0.0.22:98 in use"), seconds(1), true),
        std::tuple(failed_with(2, "address 10.0.0.1:4711 in use"), seconds(1), false),
        std::tuple(failed_with(1, "host 10.0.0.1:4711 in use"), seconds(1), false),
        std::tuple(first, seconds(60), true), std::tuple(first, seconds(61), false)}) {
    RepeatedFailure failure;
    failure.failed(first, Round(1), seconds(1), kEarlyFailureMax);
    failure.failed(second, Round(2), lived, kEarlyFailureMax);
    CHECK((failure.count() == 2) == alike);
  }
  RepeatedFailure failure;
  failure.failed(first, Round(1), seconds(1), kEarlyFailureMax);
  failure.ended(seconds(3600), kEarlyFailureMax);  // a node joined
  failure.failed(first, Round(3), seconds(1), kEarlyFailureMax);
  CHECK(failure.count() == 1);
}

TEST_CASE("without --min-uptime the budget is used up, and the report says that rounds are alike") {
  Failing run(2, std::nullopt);
  const WorkerExit exit = failed_with(1, "ModuleNotFoundError: No module named 'foo'");
  run.fail(exit, seconds(1));
  run.fail(exit, seconds(1));
  CHECK_FALSE(run.done().has_value());
  run.fail(exit, seconds(1));
  REQUIRE(run.done().has_value());
  CHECK(run.done()->failure->no_restart == "all 2 restarts are used");
  CHECK(run.done()->failure->no_retry.empty());
  CHECK(run.done()->failure->repeated.rfind("rounds 1 to 3 ended alike", 0) == 0);
}

TEST_CASE("with --min-uptime the second early failure that is alike ends the run") {
  const WorkerExit exit = failed_with(3, "ModuleNotFoundError: No module named 'foo'");
  Failing run(3, seconds(60));
  run.fail(exit, seconds(59));
  CHECK_FALSE(run.done().has_value());
  run.fail(exit, seconds(1));
  REQUIRE(run.done().has_value());
  CHECK(run.done()->exit_code == 3);
  CHECK(run.done()->failure->no_retry ==
        "in the same way twice in a row within 1 min of the start (--min-uptime=60)");
  CHECK(run.done()->failure->no_restart ==
        "2 of 3 restarts are left; without --min-uptime they are used");
  Failing other(9, seconds(60));
  other.fail(exit, seconds(1));
  other.fail(exit, seconds(61));
  other.fail(exit, seconds(1));
  other.fail(failed_with(4, "another"), seconds(1));
  other.fail(exit, seconds(1));
  CHECK_FALSE(other.done().has_value());
  other.fail(exit, seconds(1));
  CHECK(other.done().has_value());
}
