// The agent with real processes. Workers are shell scripts; in an argument `$$` stands for one `$`.
#include <signal.h>
#include <sys/socket.h>

#include <set>

#include "tests/agent/command.hpp"
#include "tests/support/catch.hpp"

using namespace ddprun;
using namespace ddprun::test;
using namespace std::chrono_literals;

namespace {

using Argv = std::vector<std::string>;

Argv driver(int workers, Argv options, const std::string& script) {
  Argv argv{AGENT_DRIVER, std::to_string(workers)};
  argv.insert(argv.end(), options.begin(), options.end());
  argv.insert(argv.end(), {"--", "sh", "-c", script});
  return argv;
}

Command start(int workers, const std::string& script, Argv options = {}, Environment changes = {}) {
  return Command(driver(workers, std::move(options), script), std::move(changes));
}

int count(const std::string& text, const std::string& part) {
  int found = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

pid_t pid_in(const std::string& path) {
  REQUIRE(wait_until([&] { return content(path).find('\n') != std::string::npos; }));
  return static_cast<pid_t>(std::stoi(content(path)));
}

// Announces its pid in $DIR/<rank>.<restart count>, then stays until it is signalled.
const std::string kAnnounce = "echo $$$$ > $DIR/$RANK.$TORCHELASTIC_RESTART_COUNT; ";
const std::string kStay = kAnnounce + "exec sleep 1000";

}  // namespace

TEST_CASE("all workers end with 0: so does ddprun, with one line at the start and one at the end") {
  auto run = start(2, "echo hello");
  CHECK(run.wait() == ExitStatus::exited(0));
  CHECK(run.out() == "hello\nhello\n");
  CHECK_THAT(run.err(), ContainsSubstring("run test-run round 1: 2 ranks, store 127.0.0.1:"));
  CHECK_THAT(run.err(), ContainsSubstring("ddprun: done, 2 ranks ended with 0 after "));
  CHECK(count(run.err(), "\n") == 2);
}

TEST_CASE("a failure stops the siblings, and the report names the rank that failed first") {
  auto run = start(3, "if [ $RANK = 1 ]; then echo needle >&2; exit 3; fi; exec sleep 1000");
  CHECK(run.wait() == ExitStatus::exited(3));
  CHECK_THAT(run.err(), ContainsSubstring("error [W-EXIT] rank 1 (local 1, pid "));
  CHECK_THAT(run.err(), ContainsSubstring("ended with exit code 3, first failure of the run\n"));
  CHECK_THAT(run.err(), ContainsSubstring("            | needle\n"));
  CHECK_THAT(run.err(), ContainsSubstring("2 ranks were running; ddprun stopped them in "));
  CHECK(count(run.err(), "first failure of the run") == 1);
}

TEST_CASE("every exit code from 0 to 255 comes out of ddprun as it went in") {
  for (int code = 0; code < 256; ++code) {
    auto run = start(1, "exit " + std::to_string(code));
    CHECK(run.wait() == ExitStatus::exited(code));
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
                   "[ $TORCHELASTIC_RESTART_COUNT = 2 ]",
                   {"restarts=2"}, {{"DIR", dir.path()}});
  CHECK(run.wait() == ExitStatus::exited(0));
  CHECK_THAT(run.err(), ContainsSubstring("ddprun: note [RESTART] restart 1 of 2, round 2\n"));
  CHECK_THAT(run.err(), ContainsSubstring("ddprun: note [RESTART] restart 2 of 2, round 3\n"));
  CHECK_THAT(run.err(), ContainsSubstring("; 2 restarts\n"));
  std::set<std::string> rounds;
  for (const char* name : {"0.0", "0.1", "0.2"}) rounds.insert(content(dir.file(name)));
  CHECK(rounds.size() == 3);
  CHECK(content(dir.file("0.1")).substr(0, 2) == "2 ");
  CHECK_THAT(content(dir.file("0.2")), ContainsSubstring(" test-run\n"));
}

TEST_CASE("when the budget is used up the run ends with the code of the last round") {
  auto run = start(2, "exit $(($TORCHELASTIC_RESTART_COUNT + 5))", {"restarts=2"});
  CHECK(run.wait() == ExitStatus::exited(7));
  CHECK_THAT(run.err(), ContainsSubstring("first failure of round 3\n"));
  CHECK_THAT(run.err(), ContainsSubstring("next      not restarted: all 2 restarts are used\n"));
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
        {"TORCH_NCCL_ASYNC_ERROR_HANDLING", "1"},
        {"WORLD_SIZE", "2"}}) {
    CHECK_THAT("\n" + content(dir.file("1")),
               ContainsSubstring("\n" + std::string(name) + "=" + value + "\n"));
  }
  // Besides these: PATH, MASTER_PORT, TORCHELASTIC_ERROR_FILE, and PWD from the shell.
  CHECK(count(content(dir.file("1")), "\n") == 22);
}

TEST_CASE("the store listens at MASTER_ADDR:MASTER_PORT before the first worker runs") {
  auto run = start(1, "exec bash -c '</dev/tcp/$MASTER_ADDR/$MASTER_PORT'");
  CHECK(run.wait() == ExitStatus::exited(0));
}

TEST_CASE("where worker 0 has the store, nobody listens at the port it is told") {
  auto run = start(1,
                   "[ $TORCHELASTIC_USE_AGENT_STORE = False ] || exit 9; "
                   "exec bash -c '</dev/tcp/$MASTER_ADDR/$MASTER_PORT' 2>/dev/null",
                   {"store=worker"});
  CHECK(run.wait() == ExitStatus::exited(1));
}

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

TEST_CASE("a stop signal reaches every worker as it is, and ddprun exits with 128 + n") {
  for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGQUIT}) {
    TemporaryDirectory dir;
    const std::string name = signal_name(signal).substr(3);
    auto run = start(2,
                     "trap 'echo got " + name + "; exit 0' " + name + "; " + kAnnounce +
                         "while :; do sleep 0.01; done",
                     {}, {{"DIR", dir.path()}});
    (void)pid_in(dir.file("0.0"));
    (void)pid_in(dir.file("1.0"));
    run.signal(signal);
    CHECK(run.wait() == ExitStatus::exited(128 + signal));
    CHECK(count(run.out(), "got " + name + "\n") == 2);
    CHECK_THAT(run.err(), ContainsSubstring("2 ranks gone after "));
  }
}

TEST_CASE("the second Ctrl-C kills at once") {
  TemporaryDirectory dir;
  auto run = start(1, "trap '' INT; " + kAnnounce + "while :; do sleep 1; done", {},
                   {{"DIR", dir.path()}});
  const pid_t worker = pid_in(dir.file("0.0"));
  run.signal(SIGINT);
  REQUIRE(run.says("press Ctrl-C again to kill at once"));
  CHECK(alive(worker));
  run.signal(SIGINT);
  CHECK(run.wait(5s) == ExitStatus::exited(130));
  CHECK_FALSE(alive(worker));
}

TEST_CASE("a stop while a failed round is being stopped ends the run: no restart") {
  TemporaryDirectory dir;
  auto run = start(2,
                   "if [ $RANK = 0 ]; then trap '' TERM; " + kAnnounce +
                       "while :; do sleep 0.1; done; fi; "
                       "while ! [ -s $DIR/0.0 ]; do :; done; exit 4",
                   {"restarts=3"}, {{"DIR", dir.path()}});
  REQUIRE(run.says("; stopping 1 other rank"));
  run.signal(SIGINT);
  CHECK(run.wait(5s) == ExitStatus::exited(130));
  CHECK_THAT(run.err(), !ContainsSubstring("[RESTART]"));
}

TEST_CASE("a SIGHUP that nohup made ignored stays ignored, for ddprun and the workers") {
  TemporaryDirectory dir;
  ::signal(SIGHUP, SIG_IGN);
  auto run = start(1, kAnnounce + "while ! [ -e $DIR/end ]; do sleep 0.01; done", {},
                   {{"DIR", dir.path()}});
  ::signal(SIGHUP, SIG_DFL);
  const pid_t worker = pid_in(dir.file("0.0"));
  run.signal(SIGHUP);
  ::kill(worker, SIGHUP);
  run.signal(SIGWINCH);
  CHECK(alive(worker));
  Command touch({"touch", dir.file("end")});
  CHECK(touch.wait().success());
  CHECK(run.wait() == ExitStatus::exited(0));
}

TEST_CASE("SIGUSR1 passes to every worker once, and the run goes on") {
  TemporaryDirectory dir;
  auto run =
      start(2, "trap 'echo usr1; exit 0' USR1; " + kAnnounce + "while :; do sleep 0.01; done", {},
            {{"DIR", dir.path()}});
  (void)pid_in(dir.file("0.0"));
  (void)pid_in(dir.file("1.0"));
  run.signal(SIGUSR1);
  CHECK(run.wait() == ExitStatus::exited(0));
  CHECK(run.out() == "usr1\nusr1\n");
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
  CHECK_THAT(run.err(), ContainsSubstring("received SIGKILL, not sent by ddprun; sender unknown"));
}

TEST_CASE("kill -9 of a worker with a budget: who died how, restart 1 of 3, round 2") {
  TemporaryDirectory dir;
  auto run = start(2, kAnnounce + "[ $TORCHELASTIC_RESTART_COUNT = 1 ] || exec sleep 1000",
                   {"restarts=3"}, {{"DIR", dir.path()}});
  const pid_t worker = pid_in(dir.file("0.0"));
  (void)pid_in(dir.file("1.0"));
  ::kill(worker, SIGKILL);
  CHECK(run.wait() == ExitStatus::exited(0));
  CHECK_THAT(run.err(), ContainsSubstring("warning [W-KILLED] rank 0 (local 0, pid " +
                                          std::to_string(worker) + ")"));
  CHECK_THAT(run.err(), ContainsSubstring("restart 1 of 3, round 2\n"));
}

TEST_CASE("a worker that fails alone and is restarted is named all the same") {
  auto run = start(1, "[ $TORCHELASTIC_RESTART_COUNT = 1 ]", {"restarts=1"});
  CHECK(run.wait() == ExitStatus::exited(0));
  CHECK(count(run.err(), "warning [W-EXIT] rank 0 (local 0, pid ") == 1);
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

TEST_CASE("two runs at once do not meet") {
  TemporaryDirectory dir;
  const std::string script =
      "echo $MASTER_PORT > $DIR/port$NAME; while ! [ -s $DIR/port1 -a -s $DIR/port2 ]; "
      "do sleep 0.01; done";
  auto one = start(1, script, {}, {{"DIR", dir.path()}, {"NAME", "1"}});
  auto two = start(1, script, {}, {{"DIR", dir.path()}, {"NAME", "2"}});
  CHECK(one.wait().success());
  CHECK(two.wait().success());
  CHECK(content(dir.file("port1")) != content(dir.file("port2")));
}

TEST_CASE("a master port in use is one sentence, before anything starts") {
  TemporaryDirectory dir;
  auto holder = start(1, kAnnounce + "echo $MASTER_PORT > $DIR/port; exec sleep 1000", {},
                      {{"DIR", dir.path()}});
  const std::string port = std::to_string(pid_in(dir.file("port")));
  auto run = start(1, "echo started", {"port=" + port});
  CHECK(run.wait() == ExitStatus::exited(1));
  CHECK(run.out().empty());
  CHECK_THAT(run.err(),
             ContainsSubstring("ddprun: error [NET-PORT] cannot listen on 127.0.0.1:" + port));
  CHECK(count(run.err(), "\n") == 1);
}

TEST_CASE("a master port that is given is the same in every round") {
  TemporaryDirectory dir;
  std::string port;
  {
    auto probe = start(1, "echo $MASTER_PORT > $DIR/port", {}, {{"DIR", dir.path()}});
    CHECK(probe.wait().success());
    port = std::to_string(pid_in(dir.file("port")));
  }
  auto run = start(2, "echo $MASTER_PORT; [ $TORCHELASTIC_RESTART_COUNT = 1 ]",
                   {"restarts=1", "port=" + port});
  CHECK(run.wait() == ExitStatus::exited(0));
  CHECK(count(run.out(), port + "\n") >= 3);
}

TEST_CASE("when rank k cannot be spawned the ranks below it are ended, in one sentence") {
  TemporaryDirectory dir;
  Argv argv{"sh", "-c", "ulimit -n 40; exec \"$@\"", "sh"};
  const Argv run_argv = driver(100, {}, kStay);
  argv.insert(argv.end(), run_argv.begin(), run_argv.end());
  Command run(argv, {{"DIR", dir.path()}});
  CHECK(run.wait() == ExitStatus::exited(1));
  CHECK(count(run.err(), "error [EXEC] rank ") == 1);
  CHECK_THAT(run.err(), ContainsSubstring("cannot be started: "));
  REQUIRE_FALSE(dir.entries().empty());
  for (const std::string& name : dir.entries()) CHECK_FALSE(alive(pid_in(dir.file(name))));
}

TEST_CASE("a missing program is 127, one that cannot be executed 126, each in one sentence") {
  TemporaryDirectory dir;
  Command missing({AGENT_DRIVER, "2", "restarts=3", "--", "/no/such/program"});
  CHECK(missing.wait() == ExitStatus::exited(127));
  CHECK_THAT(missing.err(), ContainsSubstring("error [EXEC] rank 0 on "));
  CHECK_THAT(missing.err(), ContainsSubstring("/no/such/program"));
  Command denied({AGENT_DRIVER, "2", "--", dir.path()});
  CHECK(denied.wait() == ExitStatus::exited(126));
}

TEST_CASE("nothing is left in TMPDIR, after success and after a failure without files") {
  TemporaryDirectory tmp;
  CHECK(start(2, "true", {}, {{"TMPDIR", tmp.path()}}).wait().success());
  CHECK(tmp.entries().empty());
  CHECK(start(2, "exit 1", {}, {{"TMPDIR", tmp.path()}}).wait() == ExitStatus::exited(1));
  CHECK(tmp.entries().empty());
}

TEST_CASE("the report names the log of the rank that failed, and quotes it") {
  TemporaryDirectory logs;
  auto run = start(2, "echo needle $RANK >&2; exit 5", {"redirects=3", "log=" + logs.path()});
  CHECK(run.wait() == ExitStatus::exited(5));
  CHECK_THAT(run.err(), ContainsSubstring("| needle "));
  CHECK_THAT(run.err(), ContainsSubstring("  log       " + logs.path()));
  CHECK_THAT(run.err(), ContainsSubstring("/stderr.log\n"));
}

TEST_CASE("a worker's error.json is in the report, and passed up with its code") {
  TemporaryDirectory dir;
  const std::string script =
      "printf '{\"message\": {\"message\": \"ValueError: needle\", \"extraInfo\": "
      "{\"timestamp\": \"17\"}}}' > $TORCHELASTIC_ERROR_FILE; exit 6";
  auto run = start(1, script, {}, {{"TORCHELASTIC_ERROR_FILE", dir.file("up.json")}});
  CHECK(run.wait() == ExitStatus::exited(6));
  CHECK_THAT(run.err(), ContainsSubstring("its error.json:\n            | ValueError: needle\n"));
  CHECK_THAT(content(dir.file("up.json")), ContainsSubstring("\"errorCode\":6}}"));
}

TEST_CASE("a torn error.json is noted, and the end of stderr shown instead") {
  auto run = start(1, "echo needle >&2; printf '{\"mess' > $TORCHELASTIC_ERROR_FILE; exit 6");
  CHECK(run.wait() == ExitStatus::exited(6));
  CHECK_THAT(run.err(), ContainsSubstring("its error.json is torn; last lines of its stderr:\n"
                                          "            | needle\n"));
}

TEST_CASE("an error of ddprun itself is left for the launcher above it too") {
  TemporaryDirectory dir;
  Command run({AGENT_DRIVER, "1", "--", "/no/such/program"},
              {{"TORCHELASTIC_ERROR_FILE", dir.file("up.json")}});
  CHECK(run.wait() == ExitStatus::exited(127));
  CHECK_THAT(content(dir.file("up.json")), ContainsSubstring("/no/such/program"));
}

TEST_CASE("an idle agent is not woken up") {
  TemporaryDirectory dir;
  auto run = start(8, kStay, {}, {{"DIR", dir.path()}});
  for (int rank = 0; rank < 8; ++rank) (void)pid_in(dir.file(std::to_string(rank) + ".0"));
  const auto wake_ups = [&] {
    const std::string status = content("/proc/" + std::to_string(run.pid()) + "/status");
    return std::stol(status.substr(status.find("\nvoluntary_ctxt_switches:") + 25));
  };
  // Settled: nothing has happened for a while; then nothing more happens for two seconds.
  long before = wake_ups();
  REQUIRE(wait_until([&] {
    const long now = wake_ups();
    const bool settled = !wait_until([&] { return wake_ups() != now; }, 300ms);
    before = now;
    return settled;
  }));
  CHECK_FALSE(wait_until([&] { return wake_ups() != before; }, 2s));
}
