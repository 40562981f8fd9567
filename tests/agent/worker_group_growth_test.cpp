// A group whose workers are carried into a round that grows: --restart=failed.
#include "agent/node/worker_group.hpp"

#include "tests/agent/group_driver.hpp"

using namespace ddprun;
using namespace ddprun::test;

namespace {

const StopOrdered kFrees{SIGTERM, 30s, false, StopOrdered::Then::kNextRound};
const auto kBySigkill = ExitStatus::signaled(SIGKILL);

/// All three were carried.
WorkerGroup::Options grows() {
  WorkerGroup::Options options{3, 30s, 10s, 60s, {local(0), local(1), local(2)}};
  options.grows = true;
  return options;
}

}  // namespace

TEST_CASE("a round grows: one that fails before it has joined has failed, the others are held") {
  Group group(grows());
  SECTION("before it starts") {
    CHECK(group(exited(1, kBySigkill)) == "1 failed first, disarm, log that 1 failed");
  }
  SECTION("while ranks are told") {
    group(Start{});
    group(Spawned{local(0)});
    CHECK(group(exited(1, kBySigkill)) == "1 failed first, disarm, log that 1 failed");
  }
  SECTION("when all are told") {
    group(Start{});
    for (int rank = 0; rank < 3; ++rank) group(Spawned{local(rank)});
    group(Joined{local(0)});
    CHECK(group(exited(1, kBySigkill)) == "1 failed first, disarm, log that 1 failed");
  }
  CHECK(group.state() == GroupState::kHolding);
  CHECK(group.group.held() == std::vector{local(0), local(2)});
}

TEST_CASE("a round grows: ranks that end with 0 before they have joined have finished") {
  Group group(grows());
  SECTION("before it starts") {
    for (int rank = 0; rank < 3; ++rank) CHECK(group(exited(rank, kOk)) == "");
    CHECK(group(Start{}) == "all run, disarm, finish, all succeeded");
  }
  SECTION("while ranks are told") {
    CHECK(group(Start{}) == "spawn 0");
    CHECK(group(exited(0, kOk)) == "");
    CHECK(group(exited(2, kOk)) == "");
    CHECK(group(PutOff{local(0)}) == "spawn 1");
    CHECK(group(Spawned{local(1)}) == "all run, timer at 60 s");
    CHECK(group(exited(1, kOk)) == "disarm, finish, all succeeded");
  }
  SECTION("when all are told") {
    group(Start{});
    for (int rank = 0; rank < 3; ++rank) group(Spawned{local(rank)});
    CHECK(group(exited(2, kOk)) == "");
    CHECK(group(exited(0, kOk)) == "");
    CHECK_FALSE(group.group.finished_before());
    CHECK(group(exited(1, kOk)) == "disarm, finish, all succeeded");
  }
  CHECK(group.state() == GroupState::kSucceeded);
  CHECK(group.group.finished_before());
  CHECK_FALSE(group.group.is_torn());
  CHECK_FALSE(group.group.has_left_before());
}

TEST_CASE("a round grows: ranks that had finished when it came are not started") {
  WorkerGroup::Options options = grows();
  options.carried = {local(1)};
  options.finished = {local(0), local(2)};
  Group group(options);
  CHECK(group(Start{}) == "spawn 1");
  CHECK(group(Spawned{local(1)}) == "all run, timer at 60 s");
  SECTION("and the last one finishes, too") {
    CHECK(group(exited(1, kOk)) == "disarm, finish, all succeeded");
    CHECK(group.group.finished_before());
  }
  SECTION("and the last one takes the round, which cannot do without them") {
    CHECK_FALSE(group.group.is_torn());
    CHECK(group(Joined{local(1)}) == "disarm");
    CHECK(group.group.is_torn());
    CHECK_FALSE(group.group.has_left_before());
    CHECK_FALSE(group.group.may_grow());
    CHECK(group(kFrees) == "finish");
    CHECK(group.group.held() == std::vector{local(1)});
  }
  SECTION("and the last one fails") {
    CHECK(group(exited(1, kBySigkill)) == "1 failed first, finish");
    CHECK(group.state() == GroupState::kFailed);
  }
  SECTION("and the last one does not take it in time") {
    CHECK(group(TimerExpired{kNow + 60s}, 60s) == "SIGKILL to 1, timer at 70 s");
    CHECK(group(exited(1, kOk), 60s) == "log that 1 starts again, spawn 1");
    CHECK(group.group.is_torn());
  }
}

TEST_CASE("a round grows: all have left the one before when all have joined") {
  Group group(grows());
  group(Start{});
  for (int rank = 0; rank < 3; ++rank) group(Spawned{local(rank)});
  group(Joined{local(0)});
  group(Joined{local(1)});
  CHECK_FALSE(group.group.has_left_before());
  CHECK(group(Joined{local(2)}) == "disarm, recovered");
  CHECK(group.group.has_left_before());
}

TEST_CASE("a round grows: what one that finished left behind has its time to end") {
  Group group(grows());
  group(Start{});
  group(left_behind(0, kOk));
  group(PutOff{local(0)});
  group(Spawned{local(1)});
  group(Spawned{local(2)});
  group(exited(1, kOk));
  CHECK(group(exited(2, kOk)) == "disarm, timer at 0 s, all succeeded");
  CHECK(group(GroupEmptied{local(0)}) == "finish");
  CHECK(group.state() == GroupState::kSucceeded);
}

TEST_CASE("a round may grow although some of its ranks have exited with 0, but not otherwise") {
  Group group(WorkerGroup::Options{3, 30s, 10s, 60s});
  group(Start{});
  for (int rank = 0; rank < 3; ++rank) group(Spawned{local(rank)});
  group(Survives{local(0)});
  group(Survives{local(1)});
  CHECK_FALSE(group.group.may_grow());
  group(exited(2, kOk));
  CHECK(group.group.may_grow());
  CHECK(group.group.succeeded() == std::vector{local(2)});
  CHECK(group(kFrees) == "finish");
  CHECK_FALSE(group.group.may_grow());
}
