// The agent and signals, to it and to its workers.
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include "base/clock.hpp"
#include "tests/agent/agent_run.hpp"
#include "tests/agent/said.hpp"
#include "tests/support/sentences.hpp"

using namespace ddprun;
using namespace ddprun::test;

TEST_CASE("a worker that ignores SIGTERM gets SIGKILL after the shutdown timeout") {
  TemporaryDirectory dir;
  auto run = start(2,
                   "if [ $RANK = 0 ]; then trap '' TERM; " + kAnnounce +
                       "while :; do sleep 1; done; fi; "
                       "while ! [ -s $DIR/0.0 ]; do :; done; exit 4",
                   {"timeout_ms=300"}, {{"DIR", dir.path()}});
  CHECK(run.wait() == ExitStatus::exited(4));
  CHECK_THAT(run.err(), ContainsSubstring("1 rank needed SIGKILL"));
  CHECK_FALSE(alive(pid_in(dir.file("0.0"))));
}

TEST_CASE("a second SIGHUP, as a terminal that closes sends it, leaves workers time to save") {
  TemporaryDirectory dir;
  const auto before = ::signal(SIGHUP, SIG_DFL);
  auto run = start(1,
                   "trap 'echo > $DIR/saving' HUP; trap 'echo saved; exit 0' USR1; " + kAnnounce +
                       "while :; do sleep 0.01; done",
                   {}, {{"DIR", dir.path()}});
  ::signal(SIGHUP, before);
  (void)pid_in(dir.file("0.0"));
  run.signal(SIGHUP);
  REQUIRE(wait_until([&] { return exists(dir.file("saving")); }));
  run.signal(SIGHUP);
  run.signal(SIGUSR1);  // looked at after the SIGHUP, and passed on if the worker still lives then
  CHECK(run.wait() == ExitStatus::exited(129));
  CHECK(run.out() == "saved\n");
}

TEST_CASE("a stop while a failed round is stopped: no restart, the failure's report and code") {
  TemporaryDirectory dir;
  auto run = start(2,
                   "if [ $RANK = 0 ]; then trap '' TERM; " + kAnnounce +
                       "while :; do sleep 0.1; done; fi; "
                       "while ! [ -s $DIR/0.0 ]; do :; done; exit 4",
                   {"restarts=3"}, {{"DIR", dir.path()}});
  REQUIRE(run.says("; stopping 1 other rank"));
  run.signal(SIGINT);
  CHECK(run.wait() == ExitStatus::exited(4));
  CHECK_THAT(run.err(), !ContainsSubstring("[RESTART]"));
  CHECK_THAT(run.err(), ContainsSubstring(report_of(1, 1)));
  CHECK_THAT(run.err(), ContainsSubstring("next      not restarted: "));
  CHECK_THAT(run.err(), ContainsSubstring(received_text(from_test(SIGINT))));
}

TEST_CASE("a second stop while a failed round is stopped kills at once, and the failure stays") {
  TemporaryDirectory dir;
  auto run = start(2,
                   "if [ $RANK = 0 ]; then trap '' TERM INT; " + kAnnounce +
                       "while :; do sleep 0.1; done; fi; "
                       "while ! [ -s $DIR/0.0 ]; do :; done; exit 4",
                   {}, {{"DIR", dir.path()}});
  REQUIRE(run.says("; stopping 1 other rank"));
  run.signal(SIGINT);
  REQUIRE(run.says(kPressAgain));
  run.signal(SIGINT);
  CHECK(run.wait() == ExitStatus::exited(4));  // long before the shutdown timeout
  CHECK_THAT(run.err(), ContainsSubstring(kFirstFailure));
}

TEST_CASE("a stop while the last output of a failed round is read: no restart, its code") {
  TemporaryDirectory dir;
  auto run = start(1,
                   "[ $TORCHELASTIC_RESTART_COUNT = 0 ] || exec sleep 1000; " + kAnnounce +
                       "while ! [ -e $DIR/go ]; do sleep 0.01; done; exit 4",
                   {"restarts=3"}, {{"DIR", dir.path()}});
  // This process holds the worker's stderr, so the round stays open for half a second. It stops
  // ddprun as soon as the worker was reaped.
  const pid_t worker = pid_in(dir.file("0.0"));
  const int held = ::open(("/proc/" + std::to_string(worker) + "/fd/2").c_str(), O_WRONLY);
  REQUIRE(held >= 0);
  Command touch({"touch", dir.file("go")});
  const TimePoint deadline = Clock::now() + kWaitMax;
  while (::kill(worker, 0) == 0 && Clock::now() < deadline) continue;
  run.signal(SIGTERM);
  const ExitStatus status = run.wait();
  ::close(held);
  CHECK(status == ExitStatus::exited(4));
  CHECK_THAT(run.err(), ContainsSubstring(kFirstFailure));
}

TEST_CASE("a stop while what a failed worker left is ended: no restart, its code") {
  TemporaryDirectory dir;
  // It is in a session of its own, and stops ddprun as soon as the worker was reaped.
  auto run = start(1,
                   "[ $TORCHELASTIC_RESTART_COUNT = 0 ] || exec sleep 1000; "
                   "setsid sh -c \"trap '' TERM; echo > $DIR/ready; while kill -0 $$$$; do :; "
                   "done; kill -TERM $PPID; exec sleep 1000\" & "
                   "while ! [ -e $DIR/ready ]; do :; done; exit 4",
                   {"restarts=3", "timeout_ms=300"}, {{"DIR", dir.path()}});
  CHECK(run.wait() == ExitStatus::exited(4));
  CHECK_THAT(run.err(), ContainsSubstring(kFirstFailure));
}

TEST_CASE("a stop counts the ranks that it ended, not those that had ended before") {
  TemporaryDirectory dir;
  auto run = start(2, kAnnounce + "[ $RANK = 0 ] || exec sleep 1000", {}, {{"DIR", dir.path()}});
  const pid_t first = pid_in(dir.file("0.0"));
  (void)pid_in(dir.file("1.0"));
  REQUIRE(wait_until([&] { return !exists("/proc/" + std::to_string(first)); }));  // reaped
  run.signal(SIGTERM);
  CHECK(run.wait() == ExitStatus::exited(143));
  CHECK_THAT(run.err(), ContainsSubstring("note [STOP] 1 rank gone "));
}

TEST_CASE("a worker that is stopped ends at once, not with SIGKILL after the shutdown timeout") {
  TemporaryDirectory dir;
  auto run = start(2, kStay, {}, {{"DIR", dir.path()}});
  ::kill(pid_in(dir.file("1.0")), SIGSTOP);
  (void)pid_in(dir.file("0.0"));
  run.signal(SIGTERM);
  CHECK(run.wait() == ExitStatus::exited(143));
  CHECK_THAT(run.err(), !ContainsSubstring("SIGKILL"));
}

TEST_CASE("kill -9 of a worker is reported with an unknown sender, and 137") {
  TemporaryDirectory dir;
  auto run = start(2, kStay, {}, {{"DIR", dir.path()}});
  const pid_t worker = pid_in(dir.file("1.0"));
  (void)pid_in(dir.file("0.0"));
  ::kill(worker, SIGKILL);
  CHECK(run.wait() == ExitStatus::exited(137));
  CHECK_THAT(run.err(), ContainsSubstring("error [W-KILLED] rank 1 (local 1, pid " +
                                          std::to_string(worker) + ")"));
  CHECK_THAT(run.err(), ContainsSubstring("received SIGKILL" + kSenderUnknown));
}

TEST_CASE("kill -9 of ddprun leaves no worker") {
  TemporaryDirectory dir;
  auto run = start(2, kStay, {}, {{"DIR", dir.path()}});
  const pid_t first = pid_in(dir.file("0.0"));
  const pid_t second = pid_in(dir.file("1.0"));
  run.signal(SIGKILL);
  (void)run.wait();
  CHECK(wait_until([&] { return !alive(first) && !alive(second); }));
}

TEST_CASE("stop signals that the parent had blocked reach ddprun, and the worker blocks none") {
  TemporaryDirectory dir;
  Argv argv{"env", "--block-signal"};  // all that can be blocked
  const Argv run_argv = driver(1, {}, "grep SigBlk /proc/self/status; " + kStay);
  argv.insert(argv.end(), run_argv.begin(), run_argv.end());
  Command run(argv, {{"DIR", dir.path()}});
  (void)pid_in(dir.file("0.0"));
  run.signal(SIGTERM);
  CHECK(run.wait() == ExitStatus::exited(143));
  CHECK(run.out() == "SigBlk:\t0000000000000000\n");
}

TEST_CASE("started with SIGCHLD ignored, ddprun learns the exits all the same") {
  Argv argv{"sh", "-c", "trap '' CHLD; exec \"$@\"", "sh"};
  const Argv run_argv = driver(2, {}, "exit 6");
  argv.insert(argv.end(), run_argv.begin(), run_argv.end());
  Command run(argv);
  CHECK(run.wait() == ExitStatus::exited(6));
}
