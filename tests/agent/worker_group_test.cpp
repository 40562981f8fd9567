#include "agent/node/worker_group.hpp"
#include "agent/node/kill_order.hpp"

#include "tests/agent/group_driver.hpp"

using namespace ddprun;
using namespace ddprun::test;

// One test per possible pair of state and event; the last test of the file has the impossible ones.

TEST_CASE("init, start: the first worker is spawned") {
  auto group = Group::init();
  CHECK(group(Start{}) == "spawn 0");
  CHECK(group.state() == GroupState::kStarting);
}

TEST_CASE("init, stop requested: the group is stopped before anything was started") {
  auto group = Group::init();
  CHECK(group(StopRequested{SIGTERM}) == "finish");
  CHECK(group.state() == GroupState::kStopped);
  CHECK(group.group.stop_signal() == SIGTERM);
}

TEST_CASE(
    "starting, spawned: the next worker is spawned, and after the last the group is healthy") {
  auto group = Group::starting();
  CHECK(group(Spawned{local(1)}) == "spawn 2");
  CHECK(group.state() == GroupState::kStarting);
  CHECK(group(Spawned{local(2)}) == "all run");
  CHECK(group.state() == GroupState::kHealthy);
}

TEST_CASE("starting, spawn failed: the workers below that rank are ended") {
  auto group = Group::starting();
  CHECK(group(spawn_failed(1)) == "SIGTERM to 0, timer at 30 s");
  CHECK(group.state() == GroupState::kStopping);
  CHECK(group(exited(0, ExitStatus::signaled(SIGTERM))) == "finish");
  CHECK(group.state() == GroupState::kFailed);
  REQUIRE(group.group.spawn_failure());
  CHECK(group.group.spawn_failure()->rank == local(1));
}

TEST_CASE("starting, spawn failed: at rank 0 there is no worker to end") {
  Group group;
  group(Start{});
  CHECK(group(spawn_failed(0)) == "finish");
  CHECK(group.state() == GroupState::kFailed);
}

TEST_CASE("starting, exited with a failure: no more workers are spawned, those there are stopped") {
  auto group = Group::starting();
  group(Spawned{local(1)});  // rank 2 is on its way
  CHECK(group(exited(0, kFailed3)) ==
        "0 failed first, SIGTERM to 1, timer at 30 s, log that 0 failed");
  CHECK(group.state() == GroupState::kStopping);
}

TEST_CASE("starting, exited with 0: the others are spawned all the same") {
  auto group = Group::starting();
  CHECK(group(exited(0, kOk)) == "");
  CHECK(group(Spawned{local(1)}) == "spawn 2");
  CHECK(group(exited(1, kOk)) == "");
  CHECK(group(Spawned{local(2)}) == "all run");
  CHECK(group(exited(2, kOk)) == "finish, all succeeded");
  CHECK(group.state() == GroupState::kSucceeded);
}

TEST_CASE("starting, stop requested: those there get the signal, no more are spawned") {
  auto group = Group::starting();
  CHECK(group(StopRequested{SIGINT}) == "SIGINT to 0, timer at 30 s, log SIGINT");
  CHECK(group.state() == GroupState::kStopping);
}

TEST_CASE("healthy, exited with 0: a rank that ends early is remembered, and the others continue") {
  auto group = Group::healthy();
  CHECK(group(exited(2, kOk)) == "");
  CHECK(group.state() == GroupState::kHealthy);
  CHECK(group.group.running() == std::vector{local(0), local(1)});
  CHECK(group.group.worker(local(2)).status == kOk);
}

TEST_CASE("healthy, exited with 0 by the last rank: the group has succeeded") {
  auto group = Group::healthy();
  group(exited(0, kOk));
  group(exited(1, kOk));
  CHECK(group(exited(2, kOk)) == "finish, all succeeded");
  CHECK(group.state() == GroupState::kSucceeded);
}

TEST_CASE("healthy, exited with a code: the others get SIGTERM and the shutdown timeout") {
  auto group = Group::healthy();
  CHECK(group(exited(1, kFailed3), 5s) ==
        "1 failed first, SIGTERM to 0, SIGTERM to 2, timer at 35 s, log that 1 failed");
  CHECK(group.state() == GroupState::kStopping);
}

TEST_CASE("healthy, exited by a signal: that is a failure as well") {
  auto group = Group::healthy();
  CHECK(group(exited(0, ExitStatus::signaled(SIGKILL))) ==
        "0 failed first, SIGTERM to 1, SIGTERM to 2, timer at 30 s, log that 0 failed");
}

TEST_CASE("healthy, exited with a failure by the last rank there: no rank is left to stop") {
  auto group = Group::healthy();
  group(exited(0, kOk));
  group(exited(1, kOk));
  CHECK(group(exited(2, kFailed3)) == "2 failed first, finish");
  CHECK(group.state() == GroupState::kFailed);
}

TEST_CASE("healthy, stop requested: each worker gets that very signal, once") {
  auto group = Group::healthy();
  CHECK(group(StopRequested{SIGQUIT}) ==
        "SIGQUIT to 0, SIGQUIT to 1, SIGQUIT to 2, timer at 30 s, log SIGQUIT");
  CHECK(group.state() == GroupState::kStopping);
}

TEST_CASE("stopping, spawn failed: a worker that was on its way is given up, the cause stays") {
  auto group = Group::stopping_while_spawning();
  CHECK(group(spawn_failed(1)) == "finish");
  CHECK_FALSE(group.group.spawn_failure());
}

TEST_CASE("stopping, exited: when the last is gone the group is over") {
  auto group = Group::stopping();
  CHECK(group(exited(0, ExitStatus::signaled(SIGTERM))) == "");
  CHECK(group(exited(2, kOk)) == "finish");
  CHECK(group.state() == GroupState::kFailed);
  CHECK(group.group.worker(local(0)).first_signal == SIGTERM);
  CHECK(group.group.worker(local(1)).first_signal == 0);
  CHECK(group.group.first_failure() == local(1));
}

TEST_CASE("stopping, stop requested after a failure: passed on, deadline and failure stay") {
  auto group = Group::stopping();
  CHECK(group(StopRequested{SIGINT}, 10s) == "SIGINT to 0, SIGINT to 2, log SIGINT");
  group(exited(0, ExitStatus::signaled(SIGINT)));
  CHECK(group(exited(2, ExitStatus::signaled(SIGINT))) == "finish");
  CHECK(group.state() == GroupState::kFailed);
  CHECK(group.group.stop_signal() == SIGINT);
}

TEST_CASE("stopping, stop requested a second time: the last order comes at once") {
  auto group = Group::healthy();
  group(StopRequested{SIGTERM});
  group(exited(0, ExitStatus::signaled(SIGTERM)));
  CHECK(group(StopRequested{SIGTERM}, 1s) == last_order_to({1, 2}, 1s));
  CHECK(group.state() == GroupState::kKilling);
}

TEST_CASE("stopping, stop requested a second time by SIGHUP: a terminal that closes sends two") {
  auto group = Group::healthy();
  group(StopRequested{SIGHUP});
  CHECK(group(StopRequested{SIGHUP}, 1s) == "");
  CHECK(group.state() == GroupState::kStopping);
  CHECK(group(StopRequested{SIGTERM}, 2s) == last_order_to({0, 1, 2}, 2s));
}

TEST_CASE("stopping, timer expired: those left get the last order") {
  auto group = Group::stopping();
  group(exited(0, ExitStatus::signaled(SIGTERM)));
  CHECK(group(TimerExpired{kNow + 30s}, 30s) == last_order_to({2}, 30s));
  CHECK(group.state() == GroupState::kKilling);
  CHECK(group.group.worker(local(2)).last_signal == kLastOrder.signal);
}

TEST_CASE("stopping a failure, timer expired: ranks that write their stacks have time for it") {
  auto group = Group::stopping();
  group.write_stacks = {local(0)};
  CHECK(group(TimerExpired{kNow + 30s}, 30s) == "timer at 30 s");
  CHECK(group.state() == GroupState::kStopping);
  CHECK(group(exited(0, ExitStatus::signaled(SIGABRT)), 30s) == "");
  const TimePoint until = kNow + 30s + kStacksBeforeKill;
  CHECK(group(TimerExpired{until}, 31s) == last_order_to({2}, 31s));
  CHECK(group.group.worker(local(0)).had_to_be_killed());
  CHECK(group.group.first_failure() == local(1));
}

TEST_CASE("stopping after a failure: ranks that end while they write their stacks end the group") {
  auto group = Group::stopping();
  group.write_stacks = {local(0), local(2)};
  group(TimerExpired{kNow + 30s}, 30s);
  group(exited(0, ExitStatus::signaled(SIGABRT)), 30s);
  CHECK(group(exited(2, ExitStatus::signaled(SIGABRT)), 30s) == "finish");
  CHECK(group.state() == GroupState::kFailed);
}

TEST_CASE("no stacks are asked for in a stop by a user, also if it began with a failure") {
  auto failed = Group::stopping();
  failed.write_stacks = {local(0)};
  failed(StopRequested{SIGINT}, 10s);
  CHECK(failed(TimerExpired{kNow + 30s}, 30s) == last_order_to({0, 2}, 30s));
  auto healthy = Group::healthy();
  healthy.write_stacks = {local(0)};
  healthy(StopRequested{SIGTERM});
  CHECK(healthy(TimerExpired{kNow + 30s}, 30s) == last_order_to({0, 1, 2}, 30s));
}

TEST_CASE("a user who stops the run while stacks are written does not wait for the rest") {
  auto group = Group::stopping();
  group.write_stacks = {local(0)};
  group(TimerExpired{kNow + 30s}, 30s);
  group(StopRequested{SIGINT}, 30s);
  CHECK(group(StopRequested{SIGINT}, 30s) == last_order_to({0, 2}, 30s));
}

TEST_CASE("a stop that was ordered asks for stacks only where the order says so") {
  for (const bool stacks : {false, true}) {
    auto group = Group::healthy();
    group.write_stacks = {local(1)};
    group(StopOrdered{SIGTERM, 5s, stacks});
    const std::string killed = last_order_to({0, 1, 2}, 5s);
    CHECK(group(TimerExpired{kNow + 5s}, 5s) == (stacks ? "timer at 5 s" : killed));
  }
}

TEST_CASE("stopping, timer expired that was not the latest: nothing changes") {
  auto group = Group::stopping();
  CHECK(group(TimerExpired{kNow + 29s}, 30s) == "");
  CHECK(group.state() == GroupState::kStopping);
}

TEST_CASE("killing, spawn failed: no worker is left") {
  auto group = Group::killing_while_spawning();
  CHECK(group(spawn_failed(1), 30s) == "finish");
  CHECK(group.state() == GroupState::kFailed);
}

TEST_CASE("killing, exited: when the last is gone the group is over") {
  auto group = Group::killing();
  CHECK(group(exited(0, ExitStatus::signaled(SIGKILL))) == "");
  CHECK(group(exited(2, ExitStatus::signaled(SIGKILL))) == "finish");
  CHECK(group.state() == GroupState::kFailed);
}

TEST_CASE(
    "killing, stop requested after a failure: nothing is stronger than SIGKILL, the failure "
    "stays") {
  auto group = Group::killing();
  CHECK(group(StopRequested{SIGTERM}, 31s) == "log SIGTERM");
  group(exited(0, ExitStatus::signaled(SIGKILL)));
  group(exited(2, ExitStatus::signaled(SIGKILL)));
  CHECK(group.state() == GroupState::kFailed);
}

TEST_CASE("killing, timer expired: a worker that survives SIGKILL is given up, and still listed") {
  auto group = Group::killing();
  group(exited(0, ExitStatus::signaled(SIGKILL)), 30s);
  CHECK(group(TimerExpired{kNow + 40s}, 40s) == "finish");
  CHECK(group.state() == GroupState::kFailed);
  CHECK(group.group.running() == std::vector{local(2)});
}

TEST_CASE("a stop took from its first signal to the last exit, or until no rank was waited for") {
  auto stopped = Group::healthy();
  stopped(exited(0, kOk), 1s);
  stopped(StopRequested{SIGTERM}, 5s);
  stopped(exited(1, kOk), 6s);
  stopped(exited(2, kOk), 8s);
  CHECK(stopped.group.stop_took() == 3s);
  auto abandoned = Group::healthy();
  abandoned(exited(0, kOk), 1s);
  abandoned(StopRequested{SIGTERM}, 5s);
  abandoned.kill(35s);
  abandoned(TimerExpired{kNow + 45s}, 45s);
  CHECK(abandoned.group.stop_took() == 40s);
  auto alone = Group::healthy();
  alone(exited(0, kOk), 1s);
  alone(exited(1, kOk), 1s);
  alone(exited(2, kFailed3), 9s);
  CHECK(alone.group.stop_took() == 0s);
}

TEST_CASE("succeeded, stop requested: the run has its result") {
  auto group = Group::succeeded();
  CHECK(group(StopRequested{SIGTERM}) == "");
  CHECK(group.state() == GroupState::kSucceeded);
}

TEST_CASE("failed, exited: a worker that was given up may end after all") {
  auto group = Group::failed_with_unkillable();
  CHECK(group(exited(2, ExitStatus::signaled(SIGKILL)), 50s) == "");
  CHECK(group.state() == GroupState::kFailed);
}

TEST_CASE("failed, stop requested: nothing is left to stop in this round") {
  auto group = Group::failed_with_unkillable();
  CHECK(group(StopRequested{SIGTERM}, 50s) == "");
  CHECK(group.state() == GroupState::kFailed);
}

TEST_CASE("failed, timer expired: too late to matter") {
  auto group = Group::failed_with_unkillable();
  CHECK(group(TimerExpired{kNow + 40s}, 50s) == "");
}

TEST_CASE("stopped, exited: a worker that was given up may end after all") {
  auto group = Group::stopped_with_unkillable();
  CHECK(group.state() == GroupState::kStopped);
  CHECK(group(exited(1, ExitStatus::signaled(SIGKILL)), 50s) == "");
}

TEST_CASE("stopped, stop requested: it is stopped") {
  auto group = Group::stopped();
  CHECK(group(StopRequested{SIGINT}) == "");
  CHECK(group.group.stop_signal() == SIGINT);
}

TEST_CASE("stopped, timer expired: too late to matter") {
  auto group = Group::stopped_with_unkillable();
  CHECK(group(TimerExpired{kNow + 40s}, 50s) == "");
}

TEST_CASE("init, stop ordered: a round that is over before it began starts nothing") {
  auto group = Group::init();
  CHECK(group(StopOrdered{SIGTERM, 30s}) == "finish");
  CHECK(group.state() == GroupState::kStopped);
}

TEST_CASE("starting, stop ordered: those there get the signal, no more are spawned") {
  auto group = Group::starting();
  CHECK(group(StopOrdered{SIGTERM, 5s}) == "SIGTERM to 0, timer at 5 s");
  CHECK(group(spawn_failed(1)) == "");
  CHECK(group(exited(0, kFailed3)) == "finish");
  CHECK(group.state() == GroupState::kStopped);
}

TEST_CASE("healthy, stop ordered: signal and grace are the order's, and no rank is to blame") {
  auto group = Group::healthy();
  CHECK(group(StopOrdered{SIGINT, 7s}) == "SIGINT to 0, SIGINT to 1, SIGINT to 2, timer at 7 s");
  for (int rank = 0; rank < 3; ++rank) group(exited(rank, kFailed3));
  CHECK(group.state() == GroupState::kStopped);
  CHECK(group.group.stop_signal() == 0);
}

TEST_CASE("stopping, stop ordered: the stop that is under way does it, the failure stays one") {
  auto group = Group::stopping();
  CHECK(group(StopOrdered{SIGTERM, 0s}) == "");
  group(exited(0, kOk));
  group(exited(2, kOk));
  CHECK(group.state() == GroupState::kFailed);
}

TEST_CASE("stopping because it was ordered, stop requested: passed on, then the last order") {
  auto group = Group::healthy();
  group(StopOrdered{SIGTERM, 30s});
  CHECK(group(StopRequested{SIGINT}) == "SIGINT to 0, SIGINT to 1, SIGINT to 2, log SIGINT");
  CHECK(group(StopRequested{SIGINT}, 1s) == last_order_to({0, 1, 2}, 1s));
}

TEST_CASE("stopping because it was ordered, the same signal: each rank gets it once") {
  auto group = Group::healthy();
  group(StopOrdered{SIGTERM, 30s});
  CHECK(group(StopRequested{SIGTERM}) == "log SIGTERM");
  CHECK(group(StopRequested{SIGTERM}, 1s) == last_order_to({0, 1, 2}, 1s));
}

TEST_CASE("killing, stop ordered: nothing is stronger") {
  auto group = Group::killing();
  CHECK(group(StopOrdered{SIGTERM, 30s}) == "");
  CHECK(group.state() == GroupState::kKilling);
}

TEST_CASE("a group that is over is not stopped by order any more") {
  for (auto* make : {&Group::succeeded, &Group::failed_with_unkillable, &Group::stopped}) {
    auto group = (*make)();
    const GroupState before = group.state();
    CHECK(group(StopOrdered{SIGTERM, 30s}) == "");
    CHECK(group.state() == before);
  }
}

TEST_CASE("a grace of zero still sends the signal first") {
  WorkerGroup group({1, 0s});
  (void)group.step(Start{}, kNow);
  (void)group.step(Spawned{local(0)}, kNow);
  CHECK(text(group.step(StopRequested{SIGTERM}, kNow)) ==
        "SIGTERM to 0, timer at 0 s, log SIGTERM");
  CHECK(text(group.step(TimerExpired{kNow}, kNow)) == last_order_to({0}, 0s));
}

TEST_CASE("healthy, given up: all get SIGTERM and the shutdown timeout, like after a failure") {
  auto group = Group::healthy();
  CHECK(group(GivenUp{local(1)}, 5s) ==
        "SIGTERM to 0, SIGTERM to 1, SIGTERM to 2, timer at 35 s, log that 1 failed");
  CHECK(group.state() == GroupState::kStopping);
  CHECK(group(exited(1, ExitStatus::signaled(SIGTERM)), 6s) == "");
  CHECK(group(exited(0, kFailed3), 6s) == "");  // because of the stop
  CHECK(group(exited(2, kOk), 6s) == "finish");
  CHECK(group.state() == GroupState::kFailed);
  CHECK(group.group.first_failure() == local(1));
}

TEST_CASE("every pair of state and event without a test above is a bug, and asserted") {
  const std::vector<GroupEvent> events{Start{},
                                       Spawned{local(0)},
                                       spawn_failed(0),
                                       exited(0, kOk),
                                       StopRequested{SIGINT},
                                       TimerExpired{kNow},
                                       StopOrdered{SIGTERM, 30s},
                                       GroupEmptied{local(0)},
                                       GivenUp{local(0)},
                                       StacksAsked{},
                                       Survives{local(0)},
                                       Joined{local(0)},
                                       PutOff{local(0)}};
  const std::vector<std::string> states{"init",      "starting", "healthy", "straggling",
                                        "stopping",  "killing",  "holding", "released",
                                        "succeeded", "failed",   "stopped"};
  std::string impossible;
  for (std::size_t state = 0; state < states.size(); ++state) {
    for (const GroupEvent& event : events) {
      if (WorkerGroup::possible(static_cast<GroupState>(state), event)) continue;
      impossible += states[state] + " " + std::to_string(event.index()) + "\n";
    }
  }
  CHECK(impossible ==
        "init 1\ninit 2\ninit 5\ninit 8\ninit 9\ninit 10\ninit 11\ninit 12\n"
        "starting 0\nstarting 5\nstarting 8\nstarting 9\n"
        "healthy 0\nhealthy 9\nhealthy 12\n"
        "straggling 0\nstraggling 1\nstraggling 2\nstraggling 3\nstraggling 8\nstraggling 9\n"
        "straggling 10\nstraggling 11\nstraggling 12\n"
        "stopping 0\nstopping 1\nstopping 8\nstopping 10\nstopping 12\n"
        "killing 0\nkilling 1\nkilling 8\nkilling 9\nkilling 10\nkilling 12\n"
        "holding 0\nholding 1\nholding 2\nholding 7\nholding 8\nholding 9\nholding 10\n"
        "holding 12\n"
        "released 0\nreleased 1\nreleased 2\nreleased 7\nreleased 8\nreleased 9\n"
        "released 10\nreleased 12\n"
        "succeeded 0\nsucceeded 1\nsucceeded 2\nsucceeded 3\nsucceeded 8\nsucceeded 9\n"
        "succeeded 10\nsucceeded 11\nsucceeded 12\n"
        "failed 0\nfailed 1\nfailed 2\nfailed 8\nfailed 9\nfailed 10\nfailed 11\nfailed 12\n"
        "stopped 0\nstopped 1\nstopped 2\nstopped 8\nstopped 9\nstopped 10\nstopped 11\n"
        "stopped 12\n");
}
