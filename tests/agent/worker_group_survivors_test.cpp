// A group whose workers may survive a change of the round: --restart=failed.
#include "agent/node/worker_group.hpp"

#include "tests/agent/group_driver.hpp"

using namespace ddprun;
using namespace ddprun::test;

namespace {

constexpr Duration kRejoin = 60s;
const StopOrdered kNextRound{SIGTERM, 30s, false, StopOrdered::Then::kNextRound};
const StopOrdered kWait{SIGTERM, 30s, false, StopOrdered::Then::kWait};
const StopOrdered kStop{SIGTERM, 30s};
const auto kKilled = ExitStatus::signaled(SIGKILL);

WorkerGroup::Options options(std::vector<LocalRank> carried = {}) {
  return {3, 30s, 10s, kRejoin, std::move(carried)};
}

/// All three run; these have said that they survive.
Group healthy(const std::vector<int>& survivors) {
  Group one(options());
  one(Start{});
  for (int rank = 0; rank < 3; ++rank) one(Spawned{local(rank)});
  for (const int rank : survivors) one(Survives{local(rank)});
  return one;
}

/// 2 has failed, 0 and 1 are held.
Group holding() {
  Group one = healthy({0, 1, 2});
  one(exited(2, kFailed3));
  return one;
}

/// 1 has failed, 0 is held, 2 is being stopped.
Group stopping() {
  Group one = healthy({0, 1});
  one(exited(1, kFailed3));
  return one;
}

Group released() {
  Group one = holding();
  one(kNextRound);
  return one;
}

/// 0 and 1 were carried and told, 2 was started.
Group joining() {
  Group one(options({local(0), local(1)}));
  one(Start{});
  for (int rank = 0; rank < 3; ++rank) one(Spawned{local(rank)});
  return one;
}

}  // namespace

TEST_CASE("healthy, exited with a code: survivors are held, no signal is sent") {
  auto group = healthy({0, 1, 2});
  CHECK(group(exited(2, kFailed3)) == "2 failed first, disarm, log that 2 failed");
  CHECK(group.state() == GroupState::kHolding);
  CHECK(group.group.held() == std::vector{local(0), local(1)});
  CHECK(group.group.running().empty());
  CHECK_FALSE(group.group.over());
}

TEST_CASE("healthy, exited with a code: those that do not survive are stopped as ever") {
  auto group = stopping();
  CHECK(group.state() == GroupState::kStopping);
  CHECK(group.group.worker(local(0)).first_signal == 0);
  CHECK(group.group.worker(local(2)).first_signal == SIGTERM);
  CHECK(group(exited(2, kOk), 3s) == "disarm");
  CHECK(group.state() == GroupState::kHolding);
  CHECK(group(TimerExpired{kNow + 30s}, 30s) == "");  // of the stop
}

TEST_CASE("without a time to rejoin no worker is held, whatever it says") {
  auto group = Group::healthy();
  for (int rank = 0; rank < 3; ++rank) group(Survives{local(rank)});
  CHECK(group(exited(1, kFailed3)) ==
        "1 failed first, SIGTERM to 0, SIGTERM to 2, timer at 30 s, log that 1 failed");
  CHECK(group(kNextRound) == "");
  CHECK(group.state() == GroupState::kStopping);
}

TEST_CASE("holding, the next round is ordered: those held are released, and the group is over") {
  auto group = holding();
  CHECK(group(kNextRound, 5s) == "finish");
  CHECK(group.group.over());
  CHECK(group.group.held() == std::vector{local(0), local(1)});
  CHECK(group.group.outcome() == GroupState::kFailed);
  CHECK(group.group.first_failure() == local(2));
}

TEST_CASE("stopping, the next round is ordered: it waits for those that are being stopped") {
  auto group = stopping();
  CHECK(group(kNextRound) == "");
  CHECK_FALSE(group.group.over());
  CHECK(group(exited(2, kOk)) == "finish");
  CHECK(group.state() == GroupState::kReleased);
  CHECK(group.group.held() == std::vector{local(0)});
}

TEST_CASE("healthy, the next round is ordered: all that survive are released at once") {
  auto group = healthy({0, 1, 2});
  CHECK(group(kNextRound) == "finish");
  CHECK(group.state() == GroupState::kReleased);
  CHECK(group.group.outcome() == GroupState::kStopped);
}

TEST_CASE("healthy, the next round is ordered: those that do not survive are stopped first") {
  auto group = healthy({0});
  CHECK(group(kNextRound) == "SIGTERM to 1, SIGTERM to 2, timer at 30 s");
  group(exited(1, kFailed3));
  CHECK(group(exited(2, kFailed3)) == "finish");
  CHECK(group.state() == GroupState::kReleased);
  CHECK_FALSE(group.group.first_failure());
}

TEST_CASE("a worker that fails while it is held is not the first failure, and is not released") {
  SECTION("holding") {
    auto group = holding();
    CHECK(group(exited(0, kFailed3)) == "");
    CHECK(group.group.first_failure() == local(2));
    CHECK(group(kNextRound) == "finish");
    CHECK(group.group.held() == std::vector{local(1)});
  }
  SECTION("holding, as the last one") {
    auto group = holding();
    group(exited(0, kFailed3));
    CHECK(group(exited(1, kOk)) == "finish");
    CHECK(group.state() == GroupState::kFailed);
  }
  SECTION("stopping") {
    auto group = stopping();
    CHECK(group(exited(0, kFailed3)) == "");
    CHECK(group(exited(2, kOk)) == "finish");
    CHECK(group.state() == GroupState::kFailed);
    CHECK(group.group.first_failure() == local(1));
  }
  SECTION("stopping because another node failed") {
    auto group = healthy({0});
    group(kNextRound);
    CHECK(group(exited(0, kFailed3)) == "");
    CHECK_FALSE(group.group.first_failure());
  }
  SECTION("released") {
    auto group = released();
    CHECK(group(exited(0, kFailed3)) == "");
    CHECK(group.group.held() == std::vector{local(1)});
    CHECK(group(exited(1, kFailed3)) == "");
    CHECK(group.state() == GroupState::kFailed);
  }
}

TEST_CASE("what a held worker leaves behind is stopped before the group is over") {
  auto group = holding();
  SECTION("holding") {
    CHECK(group(left_behind(0, kFailed3)) == "SIGTERM to 0, timer at 2 s");
    CHECK(group(kNextRound) == "");
  }
  SECTION("released") {
    group(kNextRound);
    CHECK(group(left_behind(0, kFailed3)) == "SIGTERM to 0, timer at 2 s");
    CHECK_FALSE(group.group.over());
    CHECK(group(kNextRound) == "");
  }
  CHECK(group(GroupEmptied{local(0)}) == "finish");
  CHECK(group.state() == GroupState::kReleased);
}

TEST_CASE("what a held worker leaves behind has its part in a stop that is under way") {
  auto group = stopping();
  SECTION("stopping") {
    CHECK(group(left_behind(0, kKilled), 1s) == "SIGTERM to 0");
    CHECK(group(exited(2, kOk), 1s) == "timer at 3 s");
  }
  SECTION("killing: it has the time after SIGKILL, too") {
    group.kill(30s);
    CHECK(group(left_behind(0, kKilled), 35s) == "SIGKILL to 0, timer at 45 s");
    CHECK(group(exited(2, kKilled), 35s) == "");
    CHECK(group(TimerExpired{kNow + 40s}, 40s) == "");
  }
  CHECK(group(GroupEmptied{local(0)}, 41s) == "finish");
}

TEST_CASE("how long workers were held is no part of how long their stop took") {
  auto group = stopping();
  group(exited(2, kOk), 3s);
  CHECK(group.group.stop_took() == 3s);
  group(kStop, 60s);
  group(exited(0, kOk), 61s);
  CHECK(group.group.stop_took() == 1s);
}

TEST_CASE("what the failed worker left behind is stopped, and those held wait for that") {
  auto group = healthy({0, 1, 2});
  CHECK(group(left_behind(2, kFailed3)) ==
        "2 failed first, SIGTERM to 2, timer at 2 s, log that 2 failed");
  CHECK(group(kNextRound) == "");
  CHECK(group(GroupEmptied{local(2)}) == "finish");
  CHECK(group.state() == GroupState::kReleased);
}

TEST_CASE("a stop takes held workers back: they get the signal and the whole grace") {
  SECTION("holding, a signal to ddprun") {
    auto group = holding();
    CHECK(group(StopRequested{SIGINT}, 5s) ==
          "SIGINT to 0, SIGINT to 1, timer at 35 s, log SIGINT");
    CHECK(group(StopRequested{SIGINT}, 6s) == last_order_to({0, 1}, 6s));
    group(exited(0, kKilled), 6s);
    CHECK(group(exited(1, kKilled), 6s) == "finish");
    CHECK(group.state() == GroupState::kFailed);
  }
  SECTION("holding, the verdict") {
    auto group = holding();
    CHECK(group(kStop, 5s) == "SIGTERM to 0, SIGTERM to 1, timer at 35 s");
    CHECK(group(kNextRound, 6s) == "");
    group(exited(0, kOk), 7s);
    CHECK(group(exited(1, kOk), 7s) == "finish");
    CHECK(group.group.held().empty());
  }
  SECTION("released") {
    auto group = released();
    CHECK(group(kStop, 5s) == "SIGTERM to 0, SIGTERM to 1, timer at 35 s");
    CHECK_FALSE(group.group.over());
  }
  SECTION("released, a signal to ddprun") {
    auto group = released();
    CHECK(group(StopRequested{SIGINT}, 5s) ==
          "SIGINT to 0, SIGINT to 1, timer at 35 s, log SIGINT");
  }
  SECTION("stopping") {
    auto group = stopping();
    CHECK(group(kStop, 20s) == "SIGTERM to 0, SIGTERM to 2, timer at 50 s");
  }
  SECTION("killing") {
    auto group = stopping();
    group(TimerExpired{kNow + 30s}, 30s);
    CHECK(group.state() == GroupState::kKilling);
    CHECK(group(kNextRound, 31s) == "");
    CHECK(group(kStop, 31s) == "SIGTERM to 0, SIGTERM to 2, timer at 61 s");
  }
}

TEST_CASE("beside a worker that SIGKILL does not end no round starts: those held are stopped") {
  auto group = stopping();
  group.kill(30s);
  CHECK(group(TimerExpired{kNow + 40s}, 40s) == "SIGTERM to 0, SIGTERM to 2, timer at 70 s");
  CHECK(group(exited(0, kOk), 41s) == "");
  group.kill(70s);
  CHECK(group(TimerExpired{kNow + 80s}, 80s) == "finish");
  CHECK(group.state() == GroupState::kFailed);
}

TEST_CASE("ranks that are given up are stopped, also those that survive: which hangs is unknown") {
  auto group = healthy({0, 1, 2});
  CHECK(group(GivenUp{local(1)}) ==
        "SIGTERM to 0, SIGTERM to 1, SIGTERM to 2, timer at 30 s, log that 1 failed");
}

TEST_CASE("a round with carried workers tells them of it first, and then starts the others") {
  Group group(options({local(0), local(2)}));
  CHECK(group(Start{}) == "spawn 0");
  CHECK(group(Spawned{local(0)}) == "spawn 2");
  CHECK(group(Spawned{local(2)}) == "spawn 1");
  CHECK(group(Spawned{local(1)}) == "all run, timer at 60 s");
  CHECK(group(Joined{local(0)}) == "");
  CHECK(group(Joined{local(2)}) == "disarm, recovered");
  CHECK(group(Joined{local(2)}) == "");
  CHECK(group(exited(0, kFailed3)) ==
        "0 failed first, SIGTERM to 1, timer at 30 s, log that 0 failed");
  CHECK(group.group.held() == std::vector{local(2)});
}

TEST_CASE("a worker may join while others are still started") {
  Group group(options({local(0)}));
  group(Start{});
  group(Spawned{local(0)});
  CHECK(group(Joined{local(0)}) == "");
  group(Spawned{local(1)});
  CHECK(group(Spawned{local(2)}) == "all run, disarm, recovered");
}

TEST_CASE("one that does not join in time is killed and started again, at no rank's expense") {
  auto group = joining();
  group(Joined{local(0)});
  CHECK(group(TimerExpired{kNow + 60s}, 60s) == "SIGKILL to 1, timer at 70 s");
  CHECK(group(Joined{local(1)}, 60s) == "");  // too late
  CHECK(group(exited(1, kKilled), 61s) == "log that 1 starts again, spawn 1");
  CHECK(group.state() == GroupState::kHealthy);
  CHECK(group(Spawned{local(1)}, 61s) == "disarm, recovered");
  CHECK_FALSE(group.group.first_failure());
  CHECK(group(exited(1, kFailed3), 62s) ==  // the second time
        "1 failed first, SIGTERM to 2, timer at 92 s, log that 1 failed");
}

TEST_CASE("one that SIGKILL does not end ends the round here, and is blamed for nothing") {
  auto group = joining();
  group(Joined{local(0)});
  group(TimerExpired{kNow + 60s}, 60s);
  CHECK(group(TimerExpired{kNow + 70s}, 70s) ==
        "SIGTERM to 0, SIGTERM to 1, SIGTERM to 2, timer at 100 s");
  CHECK_FALSE(group.group.first_failure());
}

TEST_CASE("one that ends before it has joined is started again, with whatever code it ended") {
  for (const ExitStatus& status : {kOk, kFailed3, kKilled}) {
    auto group = joining();
    group(Joined{local(0)});
    CHECK(group(exited(1, status), 1s) == "log that 1 starts again, spawn 1");
    CHECK(group(Spawned{local(1)}, 1s) == "disarm, recovered");
    CHECK(group(exited(0, kOk), 1s) == "");
    group(exited(2, kOk), 1s);
    CHECK(group(exited(1, kOk), 1s) == "finish, all succeeded");
  }
}

TEST_CASE("its place waits for what it left behind, which is killed") {
  auto group = joining();
  group(Joined{local(0)});
  CHECK(group(left_behind(1, kFailed3), 1s) == "log that 1 starts again, SIGKILL to 1");
  group(exited(0, kOk));
  CHECK(group(exited(2, kOk), 1s) == "");  // no success without it
  SECTION("which ends") {
    CHECK(group(GroupEmptied{local(1)}, 1s) == "spawn 1");
    CHECK(group(Spawned{local(1)}, 1s) == "disarm, recovered");
  }
  SECTION("which does not") {
    CHECK(group(TimerExpired{kNow + 60s}, 60s) == "SIGTERM to 1, timer at 62 s");
  }
}

TEST_CASE("one that ends before it was told is started in its turn") {
  Group group(options({local(0), local(1)}));
  SECTION("before the start") {
    CHECK(group(exited(1, kKilled)) == "log that 1 starts again");
    CHECK(group(Start{}) == "spawn 0");
    CHECK(group(Spawned{local(0)}) == "spawn 1");
  }
  SECTION("before its turn") {
    group(Start{});
    CHECK(group(exited(1, kKilled)) == "log that 1 starts again");
    CHECK(group(Spawned{local(0)}) == "spawn 1");
  }
  SECTION("between the order and its turn") {
    group(Start{});
    group(Spawned{local(0)});
    CHECK(group(exited(1, kKilled)) == "log that 1 starts again");
  }
  CHECK(group(Spawned{local(1)}) == "spawn 2");
  CHECK(group(Spawned{local(2)}) == "all run, timer at 60 s");
  CHECK(group(Joined{local(0)}) == "disarm, recovered");
}

TEST_CASE("one that ends between the order and its turn waits for what it left behind") {
  Group group(options({local(0)}));
  group(Start{});
  CHECK(group(left_behind(0, kKilled)) == "log that 0 starts again, SIGKILL to 0");
  SECTION("which is gone by its turn") {
    CHECK(group(GroupEmptied{local(0)}) == "");
    CHECK(group(Spawned{local(0)}) == "spawn 1");
    CHECK(group(Spawned{local(1)}) == "spawn 2");
    CHECK(group(Spawned{local(2)}) == "all run, disarm, recovered");
  }
  SECTION("which is not: the others come first") {
    CHECK(group(PutOff{local(0)}) == "spawn 1");
    CHECK(group(Spawned{local(1)}) == "spawn 2");
    CHECK(group(GroupEmptied{local(0)}) == "");
    CHECK(group(Spawned{local(2)}) == "spawn 0");
    CHECK(group(Spawned{local(0)}) == "all run, disarm, recovered");
  }
}

TEST_CASE("healthy, spawn failed: the place of one that was started again stays empty") {
  auto group = joining();
  group(Joined{local(0)});
  group(exited(1, kKilled));
  CHECK(group(spawn_failed(1)) == "SIGTERM to 0, SIGTERM to 2, timer at 30 s");
  CHECK(group.group.spawn_failure());
}

TEST_CASE("a stop before the start ends carried workers") {
  Group group(options({local(0)}));
  SECTION("of the round") {
    CHECK(group(kStop) == "SIGTERM to 0, timer at 30 s");
  }
  SECTION("of the run") {
    CHECK(group(StopRequested{SIGINT}) == "SIGINT to 0, timer at 30 s, log SIGINT");
  }
  SECTION("of the round, for the next one") {
    CHECK(group(kNextRound) == "finish");
    CHECK(group.group.held() == std::vector{local(0)});
    CHECK(group(kStop) == "SIGTERM to 0, timer at 30 s");
  }
  CHECK(group(exited(0, kOk)) == "finish");
}

TEST_CASE("a failure before all have joined: they are held again, and told of the next round") {
  auto group = joining();
  CHECK(group(exited(2, kFailed3)) == "2 failed first, disarm, log that 2 failed");
  CHECK(group.group.held() == std::vector{local(0), local(1)});
}

TEST_CASE("one that is killed because it did not join is not held") {
  auto group = joining();
  group(Joined{local(0)});
  group(TimerExpired{kNow + 60s}, 60s);
  CHECK(group(exited(2, kFailed3), 60s) ==
        "2 failed first, SIGTERM to 1, timer at 90 s, log that 2 failed");
  CHECK(group.group.held() == std::vector{local(0)});
}

TEST_CASE(
    "while the run waits to start the next round, survivors are held and the others stopped") {
  SECTION("healthy") {
    auto group = healthy({0, 1});
    CHECK(group(kWait) == "SIGTERM to 2, timer at 30 s");
    CHECK(group(exited(2, kOk)) == "disarm");
    CHECK(group.state() == GroupState::kHolding);
    CHECK(group(kNextRound) == "finish");
  }
  SECTION("holding") {
    auto group = holding();
    CHECK(group(kWait) == "disarm");
    CHECK(group.state() == GroupState::kHolding);
  }
  SECTION("stopping") {
    auto group = stopping();
    CHECK(group(kNextRound) == "");
    CHECK(group(kWait) == "");
    CHECK(group(exited(2, kOk)) == "disarm");
    CHECK(group.state() == GroupState::kHolding);
  }
  SECTION("released: that round does not come yet") {
    auto group = released();
    CHECK(group(kWait) == "disarm");
    CHECK_FALSE(group.group.over());
    CHECK(group(kNextRound) == "finish");
    CHECK(group(kNextRound) == "");
  }
  SECTION("after a stop of the run") {
    auto group = holding();
    group(StopRequested{SIGINT});
    CHECK(group(kWait) == "");
    CHECK(group.state() == GroupState::kStopping);
  }
}

TEST_CASE("carried workers may take the round until the next one has them, also while held") {
  using Taken = WorkerGroup::Taken;
  Group group = joining();
  group(Survives{local(0)});
  group(Survives{local(1)});
  group(Survives{local(2)});
  CHECK(group.group.taken() == Taken::kBySome);  // 2 was started in it
  group(Joined{local(0)});
  group(kNextRound);
  CHECK(group.state() == GroupState::kReleased);
  CHECK(group.group.taken() == Taken::kBySome);
  CHECK(group(Joined{local(1)}) == "");
  CHECK(group.group.taken() == Taken::kByAll);
}
