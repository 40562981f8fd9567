// The agent and what workers leave in their process groups when they end.
#include <signal.h>

#include <regex>

#include "tests/agent/agent_run.hpp"
#include "tests/agent/said.hpp"

using namespace ddprun;
using namespace ddprun::test;

namespace {

// A process beside the worker, in its group, that runs a handler when SIGTERM comes. It announces
// itself in $DIR/helper once the handler is there. A process that it starts is progress: without
// any, it is one sleep, which ends by the same SIGTERM.
enum class Progress { kYes, kNo };
std::string helper_that(const std::string& handler, Progress progress = Progress::kYes) {
  const std::string sleeps = progress == Progress::kYes ? "0.01" : "1000";
  return "sh -c 'trap \"" + handler + "\" TERM; echo $$$$ > $DIR/helper; while :; do sleep " +
         sleeps +
         "; done' & "
         "until [ -s $DIR/helper ]; do sleep 0.01; done; ";
}

bool reaped(pid_t pid) {
  return wait_until([pid] { return !exists("/proc/" + std::to_string(pid)); });
}

}  // namespace

TEST_CASE("names that killed workers leave in /dev/shm are told, and no others") {
  TemporaryDirectory dir;
  const std::string base = "ddprun-test-" + std::to_string(::getpid());
  const std::string old = "/dev/shm/" + base + "-old";
  const std::string held = "/dev/shm/" + base + "-held";
  const std::string left = "/dev/shm/" + base + "-left";
  Command({"sh", "-c", "echo > " + old}).wait();
  const Command holder({"sh", "-c",
                        "mkfifo " + dir.file("go") + "; read line < " + dir.file("go") +
                            "; exec 3> " + held + "; echo > " + dir.file("held") +
                            "; exec sleep 1000"});
  auto run = start(1,
                   "until [ -p $DIR/go ]; do sleep 0.01; done; echo > $DIR/go; "
                   "until [ -e $DIR/held ]; do sleep 0.01; done; echo > " +
                       left + "; kill -9 $$$$",
                   {}, {{"DIR", dir.path()}});
  CHECK(run.wait() == ExitStatus::exited(128 + SIGKILL));
  const std::string said = run.err();
  for (const std::string& name : {old, held, left}) ::unlink(name.c_str());
  CHECK_THAT(said, ContainsSubstring(base + "-left"));
  CHECK_THAT(said, !ContainsSubstring(base + "-old"));
  CHECK_THAT(said, !ContainsSubstring(base + "-held"));
  CHECK(count(said, "/dev/shm") == 1);
}

TEST_CASE("a background upload of a worker that succeeded is waited for") {
  TemporaryDirectory dir;
  auto run =
      start(1, kAnnounce + "mkfifo $DIR/go; (read line < $DIR/go; echo > $DIR/uploaded) & exit 0",
            {}, {{"DIR", dir.path()}});
  REQUIRE(reaped(pid_in(dir.file("0.0"))));
  REQUIRE(run.says(" behind; waiting until it makes no progress for 10 s (--straggler-timeout)\n"));
  Command go({"sh", "-c", "echo > " + dir.file("go")});
  CHECK(go.wait().success());
  CHECK(run.wait() == ExitStatus::exited(0));
  CHECK(exists(dir.file("uploaded")));
  CHECK_THAT(run.err(), ContainsSubstring("note [LEFT] rank 0 (local 0, pid "));
}

TEST_CASE(
    "what a worker left after a success gets SIGTERM at the straggler timeout, then SIGKILL") {
  TemporaryDirectory dir;
  auto run = start(1, helper_that("echo term > $DIR/term", Progress::kNo) + "exit 0",
                   {"straggler_ms=100", "timeout_ms=300"}, {{"DIR", dir.path()}});
  const pid_t helper = pid_in(dir.file("helper"));
  CHECK(run.wait() == ExitStatus::exited(0));
  CHECK(exists(dir.file("term")));
  CHECK_FALSE(alive(helper));
  CHECK_THAT(run.err(), ContainsSubstring("(sh"));
  CHECK_THAT(run.err(), ContainsSubstring("warning [LEFT] rank 0"));
  CHECK_THAT(run.err(),
             ContainsSubstring(" behind; sending SIGTERM after 100 ms without progress"));
  CHECK_THAT(run.err(), ContainsSubstring(" behind; sending SIGKILL "));
  CHECK(count(run.err(), "ddprun: done") == 1);
}

TEST_CASE("SIGTERM while only what a worker left is waited for: the run has succeeded") {
  TemporaryDirectory dir;
  auto run =
      start(1, helper_that("exit 0") + "exit 0", {"straggler_ms=600000"}, {{"DIR", dir.path()}});
  REQUIRE(run.says(" no progress for 10 min (--straggler-timeout)\n"));
  run.signal(SIGTERM);
  CHECK(run.wait() == ExitStatus::exited(0));
  CHECK_FALSE(alive(pid_in(dir.file("helper"))));
}

TEST_CASE("a helper that handles the same SIGTERM has the rest of the grace when its leader ends") {
  TemporaryDirectory dir;
  auto run = start(1, helper_that("echo > $DIR/saved; exit 0") + "exec sleep 1000", {},
                   {{"DIR", dir.path()}});
  (void)pid_in(dir.file("helper"));
  run.signal(SIGTERM);
  CHECK(run.wait() == ExitStatus::exited(143));
  CHECK(exists(dir.file("saved")));
}

TEST_CASE("a worker that fails: its helper gets SIGTERM, and the restart waits for it") {
  TemporaryDirectory dir;
  auto run = start(1,
                   "if [ $TORCHELASTIC_RESTART_COUNT = 1 ]; then [ -e $DIR/saved ]; exit $?; fi; " +
                       helper_that("echo > $DIR/saved; exit 0") + "exit 3",
                   {"restarts=1"}, {{"DIR", dir.path()}});
  CHECK(run.wait() == ExitStatus::exited(0));
  CHECK_THAT(run.err(), ContainsSubstring(restarted(1, 1)));
}

namespace {

/// Runs argv where the next pid is close to the highest, so that few later it is a low one.
Argv before_pids_wrap(const Argv& argv) {
  Argv all{"unshare",
           "--pid",
           "--fork",
           "--mount-proc",
           "sh",
           "-c",
           "highest=$(cat /proc/sys/kernel/pid_max); "
           "echo $((highest - 12)) > /proc/sys/kernel/ns_last_pid && \"$@\"",
           "sh"};
  all.insert(all.end(), argv.begin(), argv.end());
  return all;
}

}  // namespace

TEST_CASE("what a worker left is named from the oldest to the youngest, also when pids wrap") {
  Command probe(before_pids_wrap({"true"}));
  if (!probe.wait().success()) {
    WARN("needs root and pid namespaces: not tested");
    return;
  }
  TemporaryDirectory dir;
  const std::string script = helper_that("") + "exit 3";
  Command run(before_pids_wrap(driver(1, {"timeout_ms=300"}, script)), {{"DIR", dir.path()}});
  CHECK(run.wait() == ExitStatus::exited(3));
  CHECK_THAT(run.err(), ContainsSubstring("(sh"));
}

TEST_CASE("a second Ctrl-C kills what a worker left, at once") {
  TemporaryDirectory dir;
  auto run = start(1, helper_that("") + "trap '' INT; exec sleep 1000", {}, {{"DIR", dir.path()}});
  const pid_t helper = pid_in(dir.file("helper"));
  run.signal(SIGTERM);
  REQUIRE(run.says("[STOP] SIGTERM from "));
  run.signal(SIGTERM);
  CHECK(run.wait() == ExitStatus::exited(143));
  CHECK_FALSE(alive(helper));
}

TEST_CASE(
    "a helper of a dead rank that ignores SIGTERM delays the restart by two seconds at most") {
  TemporaryDirectory dir;
  auto run = start(
      1, "if [ $TORCHELASTIC_RESTART_COUNT = 1 ]; then exit 0; fi; " + helper_that(":") + "exit 3",
      {"restarts=1"}, {{"DIR", dir.path()}});
  CHECK(run.wait() == ExitStatus::exited(0));
  CHECK_FALSE(alive(pid_in(dir.file("helper"))));
  const std::regex two_seconds_later(" behind; sending SIGKILL 2(\\.[0-9])? s ");
  CHECK(std::regex_search(run.err(), two_seconds_later));
}

TEST_CASE("what makes progress after a success is waited for, however long it takes") {
  TemporaryDirectory dir;
  auto run = start(1,
                   "(for i in $$(seq 100); do echo $$i >> $DIR/part; sleep 0.01; done; "
                   "echo > $DIR/done) & exit 0",
                   {"straggler_ms=300"}, {{"DIR", dir.path()}});
  CHECK(run.wait() == ExitStatus::exited(0));
  CHECK(exists(dir.file("done")));
  CHECK_THAT(run.err(), !ContainsSubstring("SIGTERM"));
}
