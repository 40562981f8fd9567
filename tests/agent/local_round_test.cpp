// The order of events in one round.
#include "agent/config/received_signal.hpp"
#include "tests/agent/written_round.hpp"
#include "tests/support/catch.hpp"

using namespace ddprun;
using namespace ddprun::test;

TEST_CASE("a round makes its files, then starts one worker after the other") {
  TwoWorkers round;
  round.driver.begin();
  CHECK(round.ports.written() == "open files");
  round.driver.files_opened({}, {});
  CHECK(round.ports.written() == "start 0, post 1");
  round.driver.spawn_due(LocalRank(1));
  CHECK(round.ports.written() == "start 1, running");
  round.exits(1, kDone);
  round.exits(0, kDone);
  CHECK(round.ports.written() == "succeeded, over");
  CHECK(round.driver.result().state == GroupState::kSucceeded);
}

TEST_CASE("a stop before a round began starts nothing") {
  TwoWorkers round;
  round.driver.request_stop(SIGTERM);
  CHECK(round.ports.written() == "over");
  round.driver.begin();
  CHECK(round.ports.written() == "");
  CHECK(round.driver.result().state == GroupState::kStopped);
}

TEST_CASE("a stop waits neither for the log directory nor for the program") {
  TwoWorkers round;
  round.driver.begin();
  (void)round.ports.written();
  SECTION("of the run") {
    round.driver.request_stop(SIGTERM);
    CHECK(round.ports.written() == "log stop of 0, give up files, over");
  }
  SECTION("of the round") {
    round.driver.end(SIGTERM, 30s);
    CHECK(round.ports.written() == "give up files, over");
  }
  CHECK(round.driver.over());
  CHECK(round.driver.result().state == GroupState::kStopped);
}

TEST_CASE("the first worker waits for the devices of the round before, beside its files") {
  TwoWorkers round;
  round.ports.devices_are_held_ = true;
  round.driver.begin();
  CHECK(round.ports.written() == "wait for devices, open files");
  SECTION("files first") {
    round.driver.files_opened({}, {});
    CHECK(round.ports.written() == "");
    round.driver.devices_released();
  }
  SECTION("devices first") {
    round.driver.devices_released();
    CHECK(round.ports.written() == "");
    round.driver.files_opened({}, {});
  }
  CHECK(round.ports.written() == "start 0, post 1");
  CHECK_FALSE(round.driver.is_opening());
}

TEST_CASE("a stop does not wait for devices, and what is said of them later changes nothing") {
  TwoWorkers round;
  round.ports.devices_are_held_ = true;
  round.driver.begin();
  SECTION("with its files") {
    round.driver.files_opened({}, {});
    (void)round.ports.written();
    round.driver.end(SIGTERM, 30s);
    CHECK(round.ports.written() == "over");
  }
  SECTION("without a program") {
    (void)round.ports.written();
    round.driver.files_opened({}, Error(ErrorKind::kNotFound, "no such program"));
    CHECK(round.ports.written() == "over, spawn failed 0");
  }
  round.driver.devices_released();
  CHECK(round.ports.written() == "");
}

TEST_CASE("a worker that was about to be started when a stop came is not started") {
  TwoWorkers round;
  round.run_first();
  SECTION("a stop of the run") {
    round.driver.request_stop(SIGINT);
  }
  SECTION("a stop of the round") {
    round.driver.end(SIGINT, 30s);
  }
  (void)round.ports.written();
  round.driver.spawn_due(LocalRank(1));
  CHECK(round.ports.written() == "");
  round.exits(0, ExitStatus::signaled(SIGINT));
  CHECK(round.ports.written() == "over");
  CHECK(round.driver.result().stopped == 1);
}

TEST_CASE("ranks that are given up are stopped like after a failure, whose reason is told") {
  TwoWorkers round;
  round.run();
  const Finding hang{"HANG", "no rank has written", {1}, {}, "", ""};
  round.driver.give_up({LocalRank(1), 114, hang, "/logs/stacks-1s.txt"});
  CHECK(round.ports.written() ==
        "give up for HANG, SIGTERM 0, SIGTERM 1, log failure of 1, others 2, failed 1");
  CHECK(round.ports.failure_.status == ExitStatus::exited(114));
  CHECK(round.ports.failure_.given_up == hang);
  CHECK(round.ports.failure_.log == "/logs/stacks-1s.txt");
  CHECK(round.ports.failure_.since_start == 10s);
  round.exits(1, kGone);
  round.exits(0, kFailed);
  CHECK(round.ports.written() == "over");
  CHECK(round.driver.result().failure == round.ports.failure_);
  CHECK(round.driver.result().stopped == 2);
}

TEST_CASE("what happened while stacks were read comes before what they are read for") {
  TwoWorkers round;
  round.run();
  const GiveUp hang{LocalRank(0), 114, {"HANG", "", {}, {}, "", ""}, ""};
  SECTION("a failure") {
    round.exits(0, kFailed);
    (void)round.ports.written();
    round.driver.give_up(hang);
    CHECK(round.ports.written() == "");
  }
  SECTION("a success of the rank in question") {
    round.exits(0, kDone);
    round.driver.give_up(hang);
    CHECK(round.ports.failure_.worker.local_rank == LocalRank(1));
  }
  SECTION("a success of all") {
    round.exits(0, kDone);
    round.exits(1, kDone);
    (void)round.ports.written();
    round.driver.give_up(hang);
    CHECK(round.ports.written() == "");
  }
}

TEST_CASE("a worker that was about to be started when another failed is not started") {
  TwoWorkers round;
  round.run_first();
  round.exits(0, kFailed);
  CHECK(round.ports.written() == "listen 0, catch up 0, log failure of 0, others 0, look 0");
  round.driver.evidence_found({});
  round.driver.spawn_due(LocalRank(1));
  CHECK(round.ports.written() == "failed 0, over");
}

TEST_CASE("when rank k cannot be spawned those below are stopped, and the owner learns why") {
  TwoWorkers round;
  round.ports.broken_ = LocalRank(1);
  round.run_first();
  round.driver.spawn_due(LocalRank(1));
  CHECK(round.ports.written() == "start 1, SIGTERM 0, spawn failed 1");
  round.exits(0, kGone);
  CHECK(round.ports.written() == "over");
  CHECK(round.driver.result().state == GroupState::kFailed);
}

TEST_CASE("log files or a program that are not there are a failed spawn of the first worker") {
  const Error error(ErrorKind::kSystem, "no space left on device");
  TwoWorkers round;
  round.driver.begin();
  (void)round.ports.written();
  SECTION("log files") {
    round.driver.files_opened(error, {});
  }
  SECTION("program") {
    round.driver.files_opened({}, error);
  }
  CHECK(round.ports.written() == "over, spawn failed 0");
}

TEST_CASE("the others are stopped before the files of the worker that failed are read") {
  TwoWorkers round;
  round.run();
  round.exits(1, kFailed);
  CHECK(round.ports.written() ==
        "listen 1, catch up 1, SIGTERM 0, log failure of 1, others 1, look 1");
}

TEST_CASE("a round is over only when its failure was told with its evidence") {
  TwoWorkers round;
  round.run();
  round.exits(0, kDone);
  round.exits(1, kFailed);
  (void)round.ports.written();
  CHECK(round.driver.group().over());
  CHECK_FALSE(round.driver.over());
  CHECK(round.driver.failure_is_unreported());
  round.driver.evidence_found({std::nullopt, "CUDA out of memory"});
  CHECK(round.ports.written() == "failed 1, over");
  CHECK(round.ports.failure_.lines == std::vector<std::string>{"CUDA out of memory"});
  CHECK(round.driver.over());
}

TEST_CASE("a stop while the evidence of a failure is read leaves the failure first") {
  TwoWorkers round;
  round.run();
  round.exits(1, kFailed);
  round.driver.request_stop(SIGTERM);
  round.exits(0, kGone);
  (void)round.ports.written();
  round.driver.evidence_found({});
  CHECK(round.ports.written() == "failed 1, over");
  const RoundResult result = round.driver.result();
  CHECK(result.state == GroupState::kFailed);
  CHECK(result.failure->worker.rank == Rank(1));
}

TEST_CASE("SIGKILL follows at the end of the grace, and what survives it is named") {
  TwoWorkers round;
  round.run();
  round.driver.end(SIGTERM, 5s);
  CHECK(round.ports.written() == "SIGTERM 0, SIGTERM 1");
  CHECK(round.ports.deadline_ == round.ports.now_ + 5s);
  round.exits(0, kGone);
  round.ports.now_ = round.ports.deadline_;
  round.driver.timer_expired(round.ports.deadline_);
  CHECK(round.ports.written() == "kill 1");
  round.ports.now_ = round.ports.deadline_;
  round.driver.timer_expired(round.ports.deadline_);
  CHECK(round.ports.written() == "SIGKILL 1");
  round.ports.now_ = round.ports.deadline_;
  round.driver.timer_expired(round.ports.deadline_);
  CHECK(round.ports.written() == "over");
  CHECK(round.ports.deadline_ == TimePoint());
  const RoundResult result = round.driver.result();
  REQUIRE(result.unkillable.size() == 1);
  CHECK(result.unkillable.front().worker.rank == Rank(1));
  REQUIRE(result.unkillable.front().processes.size() == 1);
  CHECK(result.unkillable.front().processes.front().pid == 101);
  CHECK(result.descendants == 8);  // of the worker that has ended
  CHECK(result.stopped == 1);
  CHECK(result.killed == 0);
  CHECK(result.unkillable_worker() == "rank 1 (local 1, pid 101) on gpu-01");
  round.exits(1, ExitStatus::signaled(SIGKILL));  // after all
  CHECK(round.ports.written() == "");
}

TEST_CASE("a rank that is aborted for its stacks was stopped by ddprun, and counts as killed") {
  TwoWorkers round;
  round.ports.writes_stacks_ = true;
  round.run();
  round.driver.give_up({LocalRank(1), 114, {"HANG", "no progress", {}, {}, "", ""}, ""});
  round.exits(0, kGone);
  (void)round.ports.written();
  round.ports.now_ = round.ports.deadline_;
  round.driver.timer_expired(round.ports.deadline_);
  CHECK(round.ports.written() == "abort 1");
  round.exits(1, ExitStatus::signaled(SIGABRT));
  CHECK(round.ports.written() == "over");
  const RoundResult result = round.driver.result();
  CHECK(result.killed == 1);
  CHECK(result.stopped == 2);
  CHECK(result.failure->status == ExitStatus::exited(114));
  CHECK_FALSE(result.other_failure);
}

TEST_CASE("a failure elsewhere that complained of others asks for stacks before SIGKILL") {
  TwoWorkers round;
  round.ports.writes_stacks_ = true;
  round.run();
  round.driver.look();
  round.driver.end(SIGTERM, 5s);
  (void)round.ports.written();
  round.driver.timer_expired(round.ports.deadline_);
  CHECK(round.ports.written() == "abort 0, abort 1");
}

// Where that is unknown while others live, as without cgroups on a kernel that lists no children.
TEST_CASE("beside a worker that nothing ends, only what another one has left is named") {
  TwoWorkers round;
  round.run();
  round.driver.end(SIGTERM, 5s);
  round.exits(0, kGone, LeftBehind::kProcesses);
  for (int i = 0; i < 3; ++i) round.driver.timer_expired(round.ports.deadline_);
  CHECK(round.driver.over());
  std::vector<int> named;
  SECTION("it has left nothing") {
    named = {1};
  }
  SECTION("it has left a process") {
    round.ports.left_ = {"python3"};
    named = {1, 0};
  }
  std::vector<int> ranks;
  for (const auto& one : round.driver.result().unkillable) ranks.push_back(one.worker.rank.value());
  CHECK(ranks == named);
}

TEST_CASE("what a worker left behind is told, unless it is gone by now") {
  TwoWorkers round;
  round.run();
  round.exits(0, kDone);
  round.exits(1, kDone, LeftBehind::kProcesses);
  CHECK(round.ports.written() == "succeeded");
  SECTION("it lives") {
    round.ports.left_ = {"python3"};
    for (int i = 0; i < 2; ++i) {
      round.ports.now_ = round.ports.deadline_;
      round.driver.timer_expired(round.ports.deadline_);
    }
    CHECK(round.ports.written() == "log that python3 is left");
  }
  SECTION("it is gone") {
    for (int i = 0; i < 2; ++i) {
      round.ports.now_ = round.ports.deadline_;
      round.driver.timer_expired(round.ports.deadline_);
    }
    CHECK(round.ports.written() == "");
  }
  round.driver.emptied(LocalRank(1));
  CHECK(round.ports.written() == "over");
}

TEST_CASE("an exit says when it was") {
  TwoWorkers round;
  round.run();
  round.ports.now_ += 7s;
  round.exits(0, kFailed);
  round.driver.evidence_found({});
  CHECK(round.ports.failure_.after == 7s);
  CHECK(round.ports.failure_.since_start == 17s);
}

TEST_CASE("an exit names the signal that ended it, whichever was passed on last") {
  const auto passed = [](const ExitStatus& status) {
    PassedSignals signals;
    for (const int number : {SIGUSR1, SIGINT, SIGUSR2}) signals.add(number);
    return signals.explaining(status);
  };
  CHECK(passed(ExitStatus::signaled(SIGUSR1)) == SIGUSR1);
  CHECK(passed(ExitStatus::exited(128 + SIGUSR1)) == SIGUSR1);
  CHECK(passed(ExitStatus::signaled(SIGUSR2)) == SIGUSR2);
  CHECK(passed(ExitStatus::exited(1)) == SIGINT);  // as Python does
}

TEST_CASE("a failure that had no line has one in the result, a success has none") {
  TwoWorkers logged;
  logged.run();
  logged.exits(1, kFailed);
  logged.exits(0, kGone);
  logged.driver.evidence_found({});
  CHECK(logged.driver.result().untold_death_line().empty());
  CHECK(gone(Round(1), logged.driver.result()).stopped == 1);
  TwoWorkers last;
  last.run();
  last.exits(0, kDone);
  last.exits(1, kFailed);
  last.driver.evidence_found({});
  CHECK_FALSE(last.driver.result().untold_death_line().empty());
  TwoWorkers done;
  done.run();
  done.exits(0, kDone);
  done.exits(1, kDone);
  CHECK(done.driver.result().untold_death_line().empty());
}

TEST_CASE("workers that fail alike after a failure on another node are counted there") {
  Written ports;
  WorkerGroup::Options options{2, 30s};
  options.failure_grace = 1s;
  WrittenRound driver(ports, {Round(1), options, TimePoint(990s)});
  ports.last_lines_ = {"rank 2: no such file", "rank 3: no such file"};
  driver.begin();
  driver.files_opened({}, {});
  driver.spawn_due(LocalRank(1));
  driver.end(SIGTERM, 30s, StopOrdered::Then::kEnd, StopOrdered::Cause::kFailure);
  for (const int rank : {0, 1}) driver.exited(LocalRank(rank), kFailed, LeftBehind::kNothing);
  const RoundResult result = driver.result();
  REQUIRE(result.other_failure);
  CHECK(result.other_failure->in_grace);
  CHECK(result.alike == 1);
  CHECK(result.stopped == 0);
}

TEST_CASE("workers that fail with one code and no word are alike, if their words are seen") {
  const auto alike = [](const std::optional<std::string>& words) {
    TwoWorkers round;
    round.run();
    round.ports.last_lines_ = {words, words};
    round.exits(0, ExitStatus::exited(3));
    round.exits(1, ExitStatus::exited(3));
    return round.driver.result().alike;
  };
  CHECK(alike("") == 1);
  CHECK(alike(std::nullopt) == 0);
}

TEST_CASE("a worker that fails like the first one is counted as that, not as stopped") {
  const auto after = [](const ExitStatus& second, const std::string& line, int handled = 0) {
    TwoWorkers round;
    round.ports.handled_ = handled;
    round.run();
    round.ports.last_lines_ = {"rank 0: no such file", line};
    round.exits(0, ExitStatus::exited(3));
    round.exits(1, second);  // it had a stop signal meanwhile
    return round.driver.result();
  };
  const RoundResult alike = after(ExitStatus::exited(3), "rank 1: no such file");
  CHECK(alike.alike == 1);
  CHECK(alike.stopped == 0);
  CHECK(gone(Round(1), alike).alike == 1);
  for (const RoundResult& other :
       {after(ExitStatus::exited(3), "bye"), after(ExitStatus::exited(4), "rank 1: no such file"),
        after(ExitStatus::signaled(SIGTERM), "rank 1: no such file"),
        // Its handler of the stop signal may have ended it.
        after(ExitStatus::exited(3), "rank 1: no such file", SIGTERM)}) {
    CHECK(other.alike == 0);
    CHECK(other.stopped == 1);
  }
}
