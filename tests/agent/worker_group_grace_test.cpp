// What ends in a stop has time for: workers where a failure ends the run (--failure-grace), and
// what a dead worker left.
#include "tests/agent/group_driver.hpp"

using namespace ddprun;
using namespace ddprun::test;

namespace {

Group last(std::optional<Duration> rejoin = {}) {
  WorkerGroup::Options options{3, 30s};
  options.failure_grace = 1s;
  options.may_be_last = true;
  options.rejoin_timeout = rejoin;
  Group group(options);
  group(Start{});
  for (int rank = 0; rank < 3; ++rank) group(Spawned{local(rank)});
  return group;
}

StopOrdered ordered(StopOrdered::Cause cause, StopOrdered::Then then = StopOrdered::Then::kEnd) {
  return {SIGTERM, 30s, false, then, cause};
}

}  // namespace

TEST_CASE("a failure that ends the run leaves the other ranks their grace, then stops them") {
  Group group = last();
  CHECK(group(exited(1, kFailed3), 5s) == "1 failed first, timer at 6 s, log that 1 failed");
  CHECK(group.state() == GroupState::kStopping);
  CHECK(group.group.spared_until() == kNow + 6s);
  CHECK(group(TimerExpired{kNow + 6s}, 6s) == "SIGTERM to 0, SIGTERM to 2, timer at 36 s");
  CHECK_FALSE(group.group.spared_until());
  CHECK(group.group.spared() == 1s);
  group(exited(0, ExitStatus::signaled(SIGTERM)), 6s);
  CHECK(group(exited(2, ExitStatus::signaled(SIGTERM)), 7s) == "finish");
  CHECK(group.group.stop_took() == 1s);
  CHECK(group.group.first_failure() == local(1));
}

TEST_CASE("the failure grace ends when the other ranks have ended, and blames none of them") {
  Group group = last();
  group(exited(1, kFailed3));
  CHECK(group(exited(0, kFailed3)) == "");
  CHECK(group(exited(2, kOk)) == "finish");
  CHECK(group.state() == GroupState::kFailed);
  CHECK(group.group.first_failure() == local(1));
  CHECK(group.group.worker(local(0)).first_signal == 0);
  CHECK(group.group.spared() == 0s);
}

TEST_CASE("the failure grace is off with 0, and where a restart is certain") {
  for (const bool may_be_last : {true, false}) {
    WorkerGroup::Options options{2, 30s};
    options.failure_grace = may_be_last ? 0s : 1s;
    options.may_be_last = may_be_last;
    Group group(options);
    group(Start{});
    group(Spawned{local(0)});
    group(Spawned{local(1)});
    CHECK(group(exited(1, kFailed3)) ==
          "1 failed first, SIGTERM to 0, timer at 30 s, log that 1 failed");
  }
}

TEST_CASE("what a survivor leaves behind that ends in the failure grace is stopped after it") {
  Group group = last(60s);
  group(Survives{local(0)});
  CHECK(group(exited(1, kFailed3)) == "1 failed first, timer at 1 s, log that 1 failed");
  CHECK(group(left_behind(0, kFailed3)) == "");
  CHECK(group(TimerExpired{kNow + 1s}, 1s) == "SIGTERM to 2, SIGTERM to 0, timer at 31 s");
}

TEST_CASE("a failure elsewhere that ends the run leaves the ranks here the same grace") {
  Group group = last();
  CHECK(group(ordered(StopOrdered::Cause::kFailure)) == "timer at 1 s");
  CHECK(group(exited(0, kFailed3)) == "");  // it has lost a peer
  CHECK_FALSE(group.group.first_failure());
  CHECK(group(TimerExpired{kNow + 1s}, 1s) == "SIGTERM to 1, SIGTERM to 2, timer at 31 s");
}

TEST_CASE("what follows a failure cuts its grace short unless it is the end of the run") {
  using Cause = StopOrdered::Cause;
  const auto after = [](const GroupEvent& event, Group group = last()) {
    group(exited(1, kFailed3));
    return group(event);
  };
  const std::string stopped = "SIGTERM to 0, SIGTERM to 2, timer at 30 s";
  CHECK(after(ordered(Cause::kFailure)) == "");
  CHECK(after(ordered(Cause::kRound)) == stopped);
  CHECK(after(ordered(Cause::kRequest)) == stopped);
  CHECK(after(ordered(Cause::kRound, StopOrdered::Then::kNextRound)) == stopped);
  CHECK(after(ordered(Cause::kRound, StopOrdered::Then::kNextRound), last(60s)) == stopped);
  CHECK(after(StopRequested{SIGINT}) == "SIGINT to 0, SIGINT to 2, timer at 30 s, log SIGINT");
}

TEST_CASE("ranks that survive are held in the failure grace, and have it when the run ends") {
  Group group = last(60s);
  group(Survives{local(0)});
  CHECK(group(exited(1, kFailed3)) == "1 failed first, timer at 1 s, log that 1 failed");
  group(exited(2, kFailed3));
  CHECK(group.group.held() == std::vector{local(0)});
  CHECK(group(ordered(StopOrdered::Cause::kFailure), 1s) == "timer at 2 s");
  CHECK(group(TimerExpired{kNow + 2s}, 2s) == "SIGTERM to 0, timer at 32 s");
}

TEST_CASE("what the failed rank left is signalled when no other rank is left to wait for") {
  Group group = last();
  CHECK(group(left_behind(1, kFailed3)) == "1 failed first, timer at 1 s, log that 1 failed");
  group(exited(0, kFailed3));
  CHECK(group(exited(2, kFailed3)) == "SIGTERM to 1, timer at 2 s");
}

TEST_CASE("ranks that hang have no failure grace: no peer of theirs has gone") {
  Group group = last();
  CHECK(group(GivenUp{local(1)}) ==
        "SIGTERM to 0, SIGTERM to 1, SIGTERM to 2, timer at 30 s, log that 1 failed");
}

TEST_CASE("what dead ranks left has the limit of stragglers once no rank is left, then SIGKILL") {
  Group group = Group::healthy();
  CHECK(group(left_behind(1, kFailed3)) ==
        "1 failed first, SIGTERM to 0, SIGTERM to 2, SIGTERM to 1, timer at 30 s, "
        "log that 1 failed");
  group(exited(0, ExitStatus::signaled(SIGTERM)));
  SECTION("from the signal") {
    CHECK(group(exited(2, ExitStatus::signaled(SIGTERM)), 1s) == "timer at 2 s");
    group(TimerExpired{kNow + 2s}, 2s);
    CHECK(group.state() == GroupState::kKilling);
  }
  SECTION("from the end of its rank, if that ended later") {
    CHECK(group(left_behind(2, ExitStatus::signaled(SIGTERM)), 5s) == "timer at 7 s");
  }
  SECTION("a rank that lives has its whole grace") {
    CHECK(group(TimerExpired{kNow + 2s}, 2s) == "");
    CHECK(group(exited(2, ExitStatus::signaled(SIGTERM)), 20s) == "timer at 2 s");  // at once
  }
  SECTION("a user who has asked for the stop leaves it the grace") {
    group(StopRequested{SIGTERM});
    CHECK(group(exited(2, ExitStatus::signaled(SIGTERM)), 1s) == "");
  }
}

TEST_CASE("what dead ranks left keeps the grace of a stop on request, here or elsewhere") {
  const std::vector<GroupEvent> requests{StopRequested{SIGTERM},
                                         ordered(StopOrdered::Cause::kRequest)};
  for (const GroupEvent& request : requests) {
    Group group = Group::healthy();
    group(request);
    group(exited(0, ExitStatus::signaled(SIGTERM)));
    group(exited(2, ExitStatus::signaled(SIGTERM)));
    CHECK(group(left_behind(1, ExitStatus::signaled(SIGTERM))) == "");
    CHECK(group(TimerExpired{kNow + 2s}, 2s) == "");
  }
}

TEST_CASE("a shutdown timeout below the limit of stragglers is theirs, too") {
  Group group(WorkerGroup::Options{1, 1s});
  group(Start{});
  group(Spawned{local(0)});
  CHECK(group(left_behind(0, kFailed3)) ==
        "0 failed first, SIGTERM to 0, timer at 1 s, log that 0 failed");
}
