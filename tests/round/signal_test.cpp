// Signals that end nothing: to every other node of the live round, once.
#include <csignal>

#include "tests/round/desk.hpp"
#include "tests/support/catch.hpp"

using namespace ddprun;
using namespace ddprun::round;
using namespace ddprun::protocol;
using std::chrono::seconds;

namespace {

const PassSignal kUsr1{Round(1), 10, "scancel (pid 12)"};

}  // namespace

TEST_CASE("a signal that no program can handle, or that reports a fault, is passed on to no node") {
  Desk desk;
  desk.join_two();
  desk.both_run();
  for (const int signal : {SIGKILL, SIGSTOP, SIGSEGV, SIGABRT, SIGTSTP, SIGCHLD}) {
    desk.say(2, PassSignal{Round(1), signal});
    CHECK_FALSE(desk.last<PassSignal>(1).has_value());
  }
  for (const int signal : {SIGUSR1, SIGUSR2, SIGTERM, SIGRTMIN}) {
    desk.forget();
    desk.say(2, PassSignal{Round(1), signal});
    CHECK(desk.last<PassSignal>(1).has_value());
  }
}

TEST_CASE("a signal goes to the other nodes with the host where it came") {
  Desk desk;
  desk.join_two();
  desk.both_run();
  desk.forget();
  desk.say(2, kUsr1);
  CHECK(desk.last<PassSignal>(1) == PassSignal{Round(1), 10, "scancel (pid 12)", "b"});
  CHECK_FALSE(desk.last<PassSignal>(2).has_value());
}

TEST_CASE("the same signal of another node is that signal for two seconds, then the next one") {
  Desk desk;
  desk.join_two();
  desk.both_run();
  desk.say(2, kUsr1);
  desk.forget();
  desk.say(1, kUsr1);
  CHECK_FALSE(desk.last<PassSignal>(2).has_value());
  desk.say(1, kUsr1);
  CHECK(desk.last<PassSignal>(2).has_value());
  desk.forget();
  desk.beat_for(kSignalMergeWindow, {1, 2});
  desk.say(2, kUsr1);
  CHECK(desk.last<PassSignal>(1).has_value());
}

TEST_CASE("a signal of another round is dropped and counted") {
  Desk desk;
  desk.join_two();
  desk.both_run();
  desk.forget();
  desk.say(2, PassSignal{Round(2), 10});
  CHECK_FALSE(desk.last<PassSignal>(1).has_value());
  CHECK(desk.run_.status(desk.now_).counters.stale == 1);
}

TEST_CASE("a signal between two rounds goes to no node") {
  Desk desk;
  desk.say(1, desk.hello("a", 2, 2));
  desk.say(1, kUsr1);
  CHECK_FALSE(desk.last<PassSignal>(1).has_value());
  CHECK(desk.run_.status(desk.now_).counters.stale == 1);
}

TEST_CASE("a flood of signals is bounded, and continues at a steady rate") {
  Desk desk;
  desk.join_two();
  desk.both_run();
  int passed = 0;
  for (int i = 0; i < 2 * kSignalBurst; ++i) {
    desk.forget();
    desk.say(2, kUsr1);
    passed += desk.last<PassSignal>(1) ? 1 : 0;
    CHECK(desk.notes_ ==
          std::vector<std::string>{i < kSignalBurst
                                       ? "SIGUSR1 received on b, passed to all nodes"
                                       : "SIGUSR1 received on b is not passed to other nodes: too "
                                         "many signals in short time"});
  }
  CHECK(passed == kSignalBurst);
  desk.forget();
  desk.after(kSignalInterval);
  desk.say(2, kUsr1);
  CHECK(desk.last<PassSignal>(1).has_value());
}
