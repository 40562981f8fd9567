// What a worker leaves in its process group when it ends, in every state of the group.
#include "tests/agent/group_driver.hpp"

using namespace ddprun;
using namespace ddprun::test;

TEST_CASE("healthy, exited with a failure: what it left gets SIGTERM together with the siblings") {
  auto group = Group::healthy();
  CHECK(group(left_behind(1, kFailed3)) ==
        "1 failed first, SIGTERM to 0, SIGTERM to 2, SIGTERM to 1, timer at 30 s, log that 1 "
        "failed");
  group(exited(0, ExitStatus::signaled(SIGTERM)));
  CHECK(group(exited(2, ExitStatus::signaled(SIGTERM)), 1s) == "timer at 2 s");
  CHECK(group(GroupEmptied{local(1)}, 2s) == "finish");
  CHECK(group.state() == GroupState::kFailed);
  CHECK(group.group.worker(local(1)).first_signal == 0);  // the leader ended by itself
  CHECK(group.group.stop_took() == 2s);
}

TEST_CASE("healthy, exited with a failure by the only worker: the failure is told at once") {
  auto group = Group::healthy();
  group(exited(0, kOk));
  group(exited(2, kOk));
  CHECK(group(left_behind(1, kFailed3)) ==
        "1 failed first, SIGTERM to 1, timer at 2 s, log that 1 failed");
  CHECK(group.group.first_failure() == local(1));
}

TEST_CASE("healthy, exited with 0 while others train: what it left is left alone") {
  auto group = Group::healthy();
  CHECK(group(left_behind(1, kOk)) == "");
  CHECK(group(GroupEmptied{local(1)}, 3600s) == "");
  CHECK(group.state() == GroupState::kHealthy);
}

TEST_CASE("healthy, a sibling fails: what a rank left that ended with 0 is stopped as well") {
  auto group = Group::healthy();
  group(left_behind(1, kOk));
  CHECK(group(exited(0, kFailed3), 5s) ==
        "0 failed first, SIGTERM to 2, SIGTERM to 1, timer at 35 s, log that 0 failed");
}

TEST_CASE("starting, exited with 0: the success is told at once, what it left is waited for") {
  auto group = Group::starting();
  CHECK(group(left_behind(0, kOk)) == "");
  group(Spawned{local(1)});
  group(Spawned{local(2)});
  group(exited(1, kOk));
  CHECK(group(exited(2, kOk), 7s) == "timer at 7 s, all succeeded");
  CHECK(group.state() == GroupState::kStraggling);
}

TEST_CASE("starting, group emptied: the others are spawned all the same") {
  auto group = Group::starting();
  group(left_behind(0, kOk));
  CHECK(group(GroupEmptied{local(0)}) == "");
  CHECK(group(Spawned{local(1)}) == "spawn 2");
}

TEST_CASE("straggling, group emptied: the group has succeeded") {
  auto group = Group::straggling();
  CHECK(group.state() == GroupState::kStraggling);
  CHECK(group(GroupEmptied{local(1)}, 3s) == "finish");
  CHECK(group.state() == GroupState::kSucceeded);
}

TEST_CASE("straggling, timer expired: told after a second, SIGTERM after ten, SIGKILL after two") {
  auto group = Group::straggling();
  CHECK(group(TimerExpired{kNow}) == "timer at 1 s");
  CHECK(group(TimerExpired{kNow + 1s}, 1s) == "log what 1 left: waited for, timer at 3 s");
  for (const Duration next : {3500ms, 6000ms, 8500ms}) group(TimerExpired{kNow + next}, next);
  CHECK(group(TimerExpired{kNow + 10s}, 10s) ==
        "log what 1 left: SIGTERM, no progress, SIGTERM to 1, timer at 12 s");
  CHECK(group.state() == GroupState::kStopping);
  CHECK(group(TimerExpired{kNow + 12s}, 12s) ==
        "log what 1 left: SIGKILL, " + last_order_to({1}, 12s));
  CHECK(group(GroupEmptied{local(1)}, 12s) == "finish");
  CHECK(group.state() == GroupState::kSucceeded);
  CHECK(group.group.worker(local(1)).last_signal == 0);  // it is the rank that did not need it
}

TEST_CASE("straggling: the limit counts from the last progress of what is left") {
  auto group = Group::straggling();
  RankProgress seen;
  const auto at = [&](Duration time) { return group(TimerExpired{kNow + time, {seen}}, time); };
  at(0s);
  seen.written = 1;
  CHECK(at(1s) == "log what 1 left: waited for, timer at 3 s");
  seen.cpu = 1s;
  CHECK(at(3500ms) == "timer at 6 s");
  at(6s);
  at(8500ms);
  at(11s);
  CHECK(at(13500ms) == "log what 1 left: SIGTERM, no progress, SIGTERM to 1, timer at 15 s");
}

TEST_CASE("straggling, timer expired with a timeout of 0: SIGTERM at once") {
  WorkerGroup group({1, 30s, 0s});
  (void)group.step(Start{}, kNow);
  (void)group.step(Spawned{local(0)}, kNow);
  CHECK(text(group.step(left_behind(0, kOk), kNow)) == "timer at 0 s, all succeeded");
  CHECK(text(group.step(TimerExpired{kNow}, kNow)) ==
        "log what 0 left: SIGTERM, SIGTERM to 0, timer at 2 s");
}

TEST_CASE("straggling, stop requested: it hurries, and the run has its result") {
  auto group = Group::straggling();
  CHECK(group(StopRequested{SIGINT}, 4s) == "SIGINT to 1, timer at 12 s, log what 1 left: SIGINT");
  CHECK(group(StopRequested{SIGINT}, 5s) == "log what 1 left: SIGKILL, " + last_order_to({1}, 5s));
  group(GroupEmptied{local(1)}, 5s);
  CHECK(group.state() == GroupState::kSucceeded);
}

TEST_CASE("straggling, stop ordered: the group has succeeded all the same") {
  auto group = Group::straggling();
  CHECK(group(StopOrdered{SIGTERM, 5s}, 1s) == "SIGTERM to 1, timer at 3 s");
  CHECK(group(GroupEmptied{local(1)}, 2s) == "finish");
  CHECK(group.state() == GroupState::kSucceeded);
}

TEST_CASE("stopping, exited: what it left has two seconds, then SIGKILL") {
  auto group = Group::stopping();
  group(exited(2, ExitStatus::signaled(SIGTERM)), 1s);
  CHECK(group(left_behind(0, ExitStatus::signaled(SIGTERM)), 1s) == "timer at 3 s");
  CHECK(group(TimerExpired{kNow + 3s}, 3s) ==
        "log what 0 left: SIGKILL, " + last_order_to({0}, 3s));
  CHECK(group.group.worker(local(0)).last_signal == SIGTERM);
  CHECK(group(GroupEmptied{local(0)}, 3s) == "finish");
  CHECK(group.state() == GroupState::kFailed);
}

TEST_CASE("stopping, stop requested: what a rank left gets that signal, too") {
  auto group = Group::stopping();
  group(exited(2, ExitStatus::signaled(SIGTERM)), 1s);
  group(left_behind(0, ExitStatus::signaled(SIGTERM)), 1s);
  CHECK(group(StopRequested{SIGINT}, 2s) == "SIGINT to 0, log what 0 left: SIGINT");
}

TEST_CASE("killing, timer expired: what survives SIGKILL is given up, and still listed") {
  auto group = Group::killing();
  group(exited(0, ExitStatus::signaled(SIGKILL)), 30s);
  group(left_behind(2, ExitStatus::signaled(SIGKILL)), 30s);
  CHECK(group(TimerExpired{kNow + 40s}, 40s) == "finish");
  CHECK(group.state() == GroupState::kFailed);
  CHECK(group.group.running().empty());
  CHECK(group.group.leaving() == std::vector{local(2)});
  CHECK(group(GroupEmptied{local(2)}, 50s) == "");
}

TEST_CASE("a group that is over takes what comes late") {
  auto succeeded = Group::straggling();
  succeeded(StopRequested{SIGTERM}, 1s);
  succeeded.kill(12s);
  CHECK(succeeded(TimerExpired{kNow + 22s}, 22s) == "finish");
  CHECK(succeeded.state() == GroupState::kSucceeded);
  CHECK(succeeded(TimerExpired{kNow + 22s}, 22s) == "");
  CHECK(succeeded(GroupEmptied{local(1)}, 23s) == "");
}
