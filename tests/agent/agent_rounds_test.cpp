// Rounds of the agent: exits, restarts, the environment of a worker, the store of a round.
#include <signal.h>

#include <regex>
#include <set>
#include <sstream>

#include "tests/agent/agent_run.hpp"
#include "tests/agent/said.hpp"
#include "tests/support/sentences.hpp"

using namespace ddprun;
using namespace ddprun::test;

namespace {

/// Of ranks that did not end in the second of --failure-grace, which is measured: 1.0 s, too.
bool says_later(const std::string& report, const std::string& ranks, const std::string& them) {
  const std::regex sentence(ranks + " still running 1(\\.[0-9])? s later; ddprun stopped " + them);
  return std::regex_search(report, sentence);
}

}  // namespace

TEST_CASE("all workers end with 0: so does ddprun, with one line at the start and one at the end") {
  auto run = start(2, "echo hello");
  CHECK(run.wait() == ExitStatus::exited(0));
  CHECK(run.out() == "hello\nhello\n");
  CHECK_THAT(run.err(), ContainsSubstring("run test-run: 2 ranks"));
  CHECK_THAT(run.err(), ContainsSubstring(up_to("after ", done_line({"", 2}))));
  CHECK(count(run.err(), "\n") == 2);
}

TEST_CASE("a failure stops the siblings, and the report names the rank that failed first") {
  TemporaryDirectory dir;
  auto run = start(3,
                   "[ $RANK = 1 ] || { " + kStay +
                       "; }; "
                       "while ! [ -s $DIR/0.0 -a -s $DIR/2.0 ]; do sleep 0.01; done; "
                       "echo needle >&2; exit 3",
                   {}, {{"DIR", dir.path()}});
  CHECK(run.wait() == ExitStatus::exited(3));
  CHECK_THAT(run.err(), ContainsSubstring(report_of(1, 1)));
  CHECK_THAT(run.err(), ContainsSubstring("ended with exit code 3, " + kFirstFailure + "\n"));
  CHECK_THAT(run.err(), ContainsSubstring("            | needle\n"));
  CHECK(says_later(run.err(), "2 ranks were", "them "));
  CHECK(count(run.err(), kFirstFailure) == 1);
}

TEST_CASE("ranks that see a failure which ends the run have time to save before they are stopped") {
  TemporaryDirectory dir;
  const std::string waits_for_rank_1 =
      "until [ -s $DIR/1.0 ]; do sleep 0.01; done; "
      "while kill -0 $$(cat $DIR/1.0); do sleep 0.01; done; echo > $DIR/saved; ";
  SECTION("they end by themselves") {
    auto run =
        start(2, kAnnounce + "if [ $RANK = 1 ]; then exit 3; fi; " + waits_for_rank_1 + "exit 7",
              {}, {{"DIR", dir.path()}});
    CHECK(run.wait() == ExitStatus::exited(3));
    CHECK(exists(dir.file("saved")));
    CHECK_THAT(run.err(), !ContainsSubstring("ddprun stopped"));
  }
  SECTION("they do not end") {
    auto run = start(
        2, kAnnounce + "if [ $RANK = 1 ]; then exit 3; fi; " + waits_for_rank_1 + "exec sleep 1000",
        {}, {{"DIR", dir.path()}});
    CHECK(run.wait() == ExitStatus::exited(3));
    CHECK(exists(dir.file("saved")));
    CHECK(says_later(run.err(), "1 rank was", "it "));
  }
}

TEST_CASE("every exit code from 0 to 255 comes out of ddprun as it went in") {
  for (int first = 0; first < 256; first += 16) {  // at a time: each waits for most of its life
    std::vector<Command> runs;
    for (int code = first; code < first + 16; ++code) {
      runs.push_back(start(1, "exit " + std::to_string(code)));
    }
    for (int code = first; code < first + 16; ++code) {
      CHECK(runs[static_cast<std::size_t>(code - first)].wait() == ExitStatus::exited(code));
    }
  }
}

TEST_CASE("a worker that dies by signal n makes ddprun exit with 128 + n") {
  for (const int signal : {SIGKILL, SIGSEGV, SIGABRT, SIGTERM, SIGUSR1, SIGALRM}) {
    auto run = start(1, "ulimit -c 0; kill -" + std::to_string(signal) + " $$$$; exec sleep 1000");
    CHECK(run.wait() == ExitStatus::exited(128 + signal));
    CHECK_THAT(run.err(), ContainsSubstring(signal_name(signal)));
  }
}

TEST_CASE("a failed round costs one restart, and the next round knows its number") {
  TemporaryDirectory dir;
  auto run = start(2,
                   "echo $DDPRUN_ROUND $MASTER_PORT $TORCHELASTIC_RUN_ID "
                   "> $DIR/$RANK.$TORCHELASTIC_RESTART_COUNT; "
                   "[ $TORCHELASTIC_RESTART_COUNT = 2 ] && exit 0; "
                   "until [ -s $DIR/$((1 - RANK)).$TORCHELASTIC_RESTART_COUNT ]; do sleep 0.01; "
                   "done; exit 1",
                   {"restarts=2"}, {{"DIR", dir.path()}});
  CHECK(run.wait() == ExitStatus::exited(0));
  CHECK_THAT(run.err(), ContainsSubstring(restarted(1, 2) + "\n"));
  CHECK_THAT(run.err(), ContainsSubstring(restarted(2, 2) + " after 0.1 s"));
  CHECK_THAT(run.err(), ContainsSubstring("; 2 restarts\n"));
  std::set<std::string> ports;
  for (const std::string restarts : {"0", "1", "2"}) {
    std::istringstream said(content(dir.file("0." + restarts)));
    std::string round;
    std::string port;
    std::string run_id;
    said >> round >> port >> run_id;
    CHECK(round == std::to_string(std::stoi(restarts) + 1));
    CHECK(run_id == "test-run");
    ports.insert(port);
  }
  CHECK(ports.size() == 3);
}

TEST_CASE("when the budget is used up the run ends with the code of the last round") {
  auto run = start(2, "exit $(($TORCHELASTIC_RESTART_COUNT + 5))", {"restarts=2"});
  CHECK(run.wait() == ExitStatus::exited(7));
  CHECK_THAT(run.err(), ContainsSubstring("first failure of round 3\n"));
  CHECK_THAT(run.err(), ContainsSubstring("next      " + none_left(2) + "\n"));
}

TEST_CASE("a worker has exactly the environment of the launcher and the variables of its place") {
  TemporaryDirectory dir;
  auto run = Command::with_environment(
      driver(2, {"restarts=3"}, "/usr/bin/env > " + dir.path() + "/$RANK"),
      {{"KEPT", "a b"}, {"PATH", "/usr/bin:/bin"}});
  CHECK(run.wait() == ExitStatus::exited(0));
  std::string environment;
  for (const auto& [name, value] :
       {std::pair{"DDPRUN_ROUND", "1"},
        {"GROUP_RANK", "0"},
        {"GROUP_WORLD_SIZE", "1"},
        {"KEPT", "a b"},
        {"LOCAL_RANK", "1"},
        {"LOCAL_WORLD_SIZE", "2"},
        {"MASTER_ADDR", "127.0.0.1"},
        {"RANK", "1"},
        {"ROLE_NAME", "default"},
        {"ROLE_RANK", "1"},
        {"ROLE_WORLD_SIZE", "2"},
        {"TORCHELASTIC_MAX_RESTARTS", "3"},
        {"TORCHELASTIC_RESTART_COUNT", "0"},
        {"TORCHELASTIC_RUN_ID", "test-run"},
        {"TORCHELASTIC_SIGNALS_TO_HANDLE", "SIGTERM,SIGINT,SIGHUP,SIGQUIT"},
        {"TORCHELASTIC_USE_AGENT_STORE", "True"},
        {"PYTHONFAULTHANDLER", "1"},
        {"TORCH_NCCL_ASYNC_ERROR_HANDLING", "1"},
        {"WORLD_SIZE", "2"}}) {
    CHECK_THAT("\n" + content(dir.file("1")),
               ContainsSubstring("\n" + std::string(name) + "=" + value + "\n"));
  }
  CHECK_THAT(content(dir.file("1")), ContainsSubstring("/1/1\n"));  // the end of DDPRUN_WORKER
  CHECK_THAT(content(dir.file("1")), ContainsSubstring("\nDDPRUN_WORKER_SOCKET="));
  // Besides these: PATH, MASTER_PORT, TORCHELASTIC_ERROR_FILE, PYTHONFAULTHANDLER, and PWD from the
  // shell.
  CHECK(count(content(dir.file("1")), "\n") == 25);
}

TEST_CASE("the store listens at MASTER_ADDR:MASTER_PORT before the first worker runs") {
  auto run = start(1, "exec bash -c '</dev/tcp/$MASTER_ADDR/$MASTER_PORT'");
  CHECK(run.wait() == ExitStatus::exited(0));
}

TEST_CASE("where worker 0 has the store, no process listens at the port it is told") {
  auto run = start(1,
                   "[ $TORCHELASTIC_USE_AGENT_STORE = False ] || exit 9; "
                   "exec bash -c '</dev/tcp/$MASTER_ADDR/$MASTER_PORT' 2>/dev/null",
                   {"store=worker"});
  CHECK(run.wait() == ExitStatus::exited(1));
}

TEST_CASE(
    "a stop signal that comes while workers are spawned ends those there and starts no more") {
  TemporaryDirectory dir;
  auto run = start(300, kStay, {}, {{"DIR", dir.path()}});
  (void)pid_in(dir.file("0.0"));
  run.signal(SIGTERM);
  CHECK(run.wait() == ExitStatus::exited(143));
  for (const std::string& name : dir.entries()) {
    const std::string pid = content(dir.file(name));
    if (!pid.empty()) CHECK_FALSE(alive(static_cast<pid_t>(std::stoi(pid))));
  }
}

TEST_CASE("a worker that ddprun stopped is never blamed, however it ends") {
  TemporaryDirectory dir;
  auto run = start(2,
                   "if [ $RANK = 0 ]; then trap 'echo innocent >&2; exit 66' TERM; " + kAnnounce +
                       "while :; do sleep 0.01; done; fi; "
                       "while ! [ -s $DIR/0.0 ]; do :; done; exit 4",
                   {}, {{"DIR", dir.path()}});
  CHECK(run.wait() == ExitStatus::exited(4));
  CHECK_THAT(run.err(), !ContainsSubstring("exit code 66"));
  CHECK_THAT(run.err(), !ContainsSubstring("| innocent"));
}

TEST_CASE("the store of a failed round is closed before the next round starts") {
  TemporaryDirectory dir;
  // Round 2 tries the port of round 1: no process may answer.
  auto run = start(
      1,
      "if [ $TORCHELASTIC_RESTART_COUNT = 0 ]; then echo $MASTER_PORT > $DIR/port; exit 1; fi; "
      "exec bash -c '! </dev/tcp/$MASTER_ADDR/'$(cat $DIR/port) 2>/dev/null",
      {"restarts=1"}, {{"DIR", dir.path()}});
  CHECK(run.wait() == ExitStatus::exited(0));
}
