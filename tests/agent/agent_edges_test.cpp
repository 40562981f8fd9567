// The agent where something outside is missing, in the way or in use.
#include <signal.h>

#include <fstream>

#include "base/process_setup.hpp"
#include "tests/agent/agent_run.hpp"
#include "tests/store/live.hpp"
#include "tests/support/free_port.hpp"
#include "tests/support/sentences.hpp"

using namespace ddprun;
using namespace ddprun::test;
using namespace std::chrono_literals;

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
    CHECK_THAT(run.err(), ContainsSubstring("2 ranks gone "));
  }
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

TEST_CASE("a stranger that the round's store turns away is named once") {
  const std::string stranger =
      "exec 3<> /dev/tcp/127.0.0.1/$MASTER_PORT; printf 'GET / HTTP/1.1\\r\\n' >&3; cat <&3";
  auto run = start(1, "exec bash -c \"" + stranger + "\"");
  CHECK(run.wait().success());
  CHECK_THAT(run.err(), ContainsSubstring("ddprun: warning [STORE] store closed a connection: "));
  CHECK(count(run.err(), "[STORE]") == 1);
}

TEST_CASE("a soft limit on descriptors bounds the workers, not the store") {
  constexpr int kClients = 1100;
  raise_descriptor_limit();
  rlimit here{};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &here) == 0);
  REQUIRE(here.rlim_max > kClients + 100);
  TemporaryDirectory dir;
  Argv argv{"sh", "-c", "ulimit -Sn 1024; exec \"$@\"", "sh"};
  const Argv run_argv = driver(
      1, {}, "echo $(ulimit -Sn) $(ulimit -Hn); echo $MASTER_PORT > $DIR/port; exec sleep 1000");
  argv.insert(argv.end(), run_argv.begin(), run_argv.end());
  Command run(argv, {{"DIR", dir.path()}});
  const auto port = static_cast<std::uint16_t>(pid_in(dir.file("port")));
  CHECK(run.out() == "1024 " + std::to_string(here.rlim_max) + "\n");
  std::vector<store::Client> clients;
  for (int i = 0; i < kClients; ++i) {
    clients.emplace_back(port);
    clients.back().send(store::requests::validate() + store::requests::ping(7));
  }
  for (auto& client : clients) REQUIRE(client.receive(4) == store::requests::u32(7));
  run.signal(SIGTERM);
  CHECK(run.wait() == ExitStatus::exited(143));
}

TEST_CASE("clients that hold all connections of a store leave a restart its descriptors") {
  TemporaryDirectory dir;
  Argv argv{"sh", "-c", "ulimit -n 256; exec \"$@\"", "sh"};
  const Argv run_argv = driver(2, {"restarts=1"}, R"sh(
    [ $TORCHELASTIC_RESTART_COUNT = 1 ] && exit 0
    [ $RANK = 0 ] && echo $MASTER_PORT > $DIR/port
    while ! [ -e $DIR/go ]; do sleep 0.05; done
    exit 3)sh");
  argv.insert(argv.end(), run_argv.begin(), run_argv.end());
  Command run(argv, {{"DIR", dir.path()}});
  const auto port = static_cast<std::uint16_t>(pid_in(dir.file("port")));
  std::vector<store::Client> clients;
  for (int i = 0; i < 300; ++i) clients.emplace_back(port);
  CHECK(clients.back().closed());
  std::ofstream(dir.file("go")) << "go";
  CHECK(run.wait() == ExitStatus::exited(0));
  CHECK_THAT(run.err(), ContainsSubstring("more than connections = "));
}

TEST_CASE("when rank k cannot be spawned the ranks below it are ended, in one sentence") {
  TemporaryDirectory dir;
  Argv argv{"sh", "-c", "ulimit -n 40; exec \"$@\"", "sh"};
  const Argv run_argv = driver(100, {}, kStay);
  argv.insert(argv.end(), run_argv.begin(), run_argv.end());
  Command run(argv, {{"DIR", dir.path()}});
  CHECK(run.wait() == ExitStatus::exited(1));
  CHECK(count(run.err(), "error [EXEC] rank ") == 1);
  CHECK(run.err().rfind("\nddprun: ") + 1 == run.err().find("ddprun: error [EXEC]"));
  CHECK_THAT(run.err(), ContainsSubstring("cannot be started: "));
  REQUIRE_FALSE(dir.entries().empty());
  for (const std::string& name : dir.entries()) {
    // A worker that was ended between opening its file and writing to it left an empty one.
    if (!content(dir.file(name)).empty()) CHECK_FALSE(alive(pid_in(dir.file(name))));
  }
}

TEST_CASE("without descriptors for its event loop ddprun names the limit in one sentence") {
  Argv argv{"sh", "-c", "ulimit -n 5; exec \"$@\"", "sh"};
  const Argv run_argv = driver(1, {}, "true");
  argv.insert(argv.end(), run_argv.begin(), run_argv.end());
  Command run(argv);
  CHECK(run.wait() == ExitStatus::exited(1));
  CHECK_THAT(run.err(), ContainsSubstring("error [START] cannot start: Too many open files") &&
                            ContainsSubstring("ulimit -n"));
}

TEST_CASE("with too few descriptors, however many, a start names the limit in its last sentence") {
  for (int limit = 5; limit <= 24; ++limit) {
    CAPTURE(limit);
    Argv argv{"sh", "-c", "ulimit -n " + std::to_string(limit) + "; exec \"$@\"", "sh"};
    const Argv run_argv = driver(1, {}, "true");
    argv.insert(argv.end(), run_argv.begin(), run_argv.end());
    Command run(argv);
    const bool started = run.wait().success();
    if (!started) CHECK_THAT(run.err(), ContainsSubstring("ulimit -n"));
  }
}

TEST_CASE("a log directory that is removed while workers run is made again for the next start") {
  const std::string remove_logs =
      "[ $TORCHELASTIC_RESTART_COUNT = 1 ] && exit 0; "
      "rm -r $(dirname $(dirname $(dirname $(dirname $TORCHELASTIC_ERROR_FILE)))); exit 1";
  TemporaryDirectory dir;
  SECTION("a temporary one") {
    auto run = start(2, remove_logs, {"restarts=1"}, {{"TMPDIR", dir.path()}});
    CHECK(run.wait().success());
    CHECK(dir.entries().empty());
  }
  SECTION("a given one") {
    auto run = start(2, remove_logs, {"restarts=1", "log=" + dir.file("logs")});
    CHECK(run.wait().success());
    CHECK(exists(dir.file("logs")));
  }
}

TEST_CASE("with --log-max redirected output is limited, in the files where it is looked for") {
  TemporaryDirectory dir;
  const std::string script = "i=0; while [ $i -lt 2000 ]; do echo line $i; i=$$((i+1)); done";
  auto run = start(1, script, {"log=" + dir.file("logs"), "redirects=1", "log_max=4096"});
  CHECK(run.wait() == ExitStatus::exited(0));
  std::string kept;
  for (const std::string end : {"stdout.log", "stdout.log.1", "stdout.log.2"}) {
    for (const std::string& name : dir.entries()) {
      if (name.ends_with("/attempt_0/0/" + end)) kept += content(dir.file(name));
    }
  }
  CHECK(kept.starts_with("line 0\nline 1\n"));
  CHECK(kept.ends_with("\nline 1998\nline 1999\n"));
  CHECK(kept.size() < 4096 + 100);
  CHECK(count(kept, kBytesLeftOut) == 1);
}

TEST_CASE("with --log-max a full disk does not reach a worker whose output is redirected") {
  TemporaryDirectory dir;
  // The limit on the size of files stands for the disk; the consoles are pipes.
  const std::string limited = "(ulimit -f 0; trap '' XFSZ; \"$@\"; echo ended with $?) 2>&1 | cat";
  auto run = Command({"sh", "-c", limited, "sh", AGENT_DRIVER, "1", "log=" + dir.file("logs"),
                      "log_max=4194304", "redirects=3", "--", "sh", "-c",
                      "echo out && echo err >&2 && exit 0; exit 9"});
  CHECK(run.wait() == ExitStatus::exited(0));
  CHECK_THAT(run.out(), ContainsSubstring("ended with 0"));
  CHECK(count(run.out(), "/stdout.log: ") == 1);
  CHECK(count(run.out(), "/stderr.log: ") == 1);
}

TEST_CASE("a restart continues without log files where they cannot be made any more") {
  TemporaryDirectory dir;
  // All names that would be tried are taken: the same error path as that of a full disk.
  const std::string script =
      "[ $DDPRUN_ROUND = 2 ] && { echo needle >&2; exit 4; }; cd $DIR/*; mkdir attempt_1 "
      "attempt_1_round_2 $(seq -f attempt_1_round_2_%g 2 200); exit 3";
  auto run =
      start(1, script, {"restarts=1", "redirects=3", "log=" + dir.path()}, {{"DIR", dir.path()}});
  CHECK(run.wait() == ExitStatus::exited(4));
  CHECK(count(run.err(), kWithoutLogFiles) == 1);
  CHECK_THAT(run.err(), ContainsSubstring("| needle"));
}

TEST_CASE("redirected output stays in TMPDIR, in the folder that the first line names") {
  for (const char* option : {"redirects=1", "tee=1"}) {
    TemporaryDirectory tmp;
    auto run = start(1, "echo needle", {option}, {{"TMPDIR", tmp.path()}});
    CHECK(run.wait().success());
    const std::string said = run.err();
    const auto begin = said.find(tmp.path());
    REQUIRE(begin != std::string::npos);
    const std::string folder = said.substr(begin, said.find_first_of(";,\n", begin) - begin);
    CHECK(content(folder + "/attempt_0/0/stdout.log") == "needle\n");
    const std::size_t left = tmp.entries().size();
    CHECK(start(1, "true", {option}, {{"TMPDIR", tmp.path()}}).wait().success());
    CHECK(tmp.entries().size() == left);  // empty files are none
  }
}

TEST_CASE("a failure is told once where the others stop at once, and before a restart") {
  const std::string script = "[ $RANK = 0 ] && exit 3; exec sleep 1000";
  auto once = start(2, script);
  CHECK(once.wait() == ExitStatus::exited(3));
  CHECK(count(once.err(), "rank 0 (local 0, pid ") == 1);
  auto again = start(2, script, {"restarts=1"});
  CHECK(again.wait() == ExitStatus::exited(3));
  const std::string said = again.err();
  CHECK(count(said, "rank 0 (local 0, pid ") == 2);
  CHECK(said.find("ddprun: warning [W-EXIT] rank 0 ") < said.find("[RESTART]"));
}

TEST_CASE("nothing is left in TMPDIR, after success and after a failure without files") {
  TemporaryDirectory tmp;
  CHECK(start(2, "true", {}, {{"TMPDIR", tmp.path()}}).wait().success());
  CHECK(tmp.entries().empty());
  CHECK(start(2, "exit 1", {}, {{"TMPDIR", tmp.path()}}).wait() == ExitStatus::exited(1));
  CHECK(tmp.entries().empty());
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
  CHECK_THAT(run.err(), ContainsSubstring("its error.json is truncated; " + kLastLines +
                                          ":\n            | needle\n"));
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
  // The start may end late on a busy machine; the agent is idle after it.
  CHECK(wait_until([&] {
    const long before = wake_ups();
    return !wait_until([&] { return wake_ups() != before; }, 2s);
  }));
}

// Of stderr: where stdout goes the same way, workers wait, as they do where they inherit it. While
// they run they wait for a minute, too (console_test.cpp): rank 0 is held up by the console when
// rank 1 fails, and has its last words all the same.
TEST_CASE("a console that is not read stops neither the workers nor ddprun, and keeps its report") {
  TemporaryDirectory dir;
  const std::string script =
      "fill() { head -c 4000000 /dev/zero | tr '\\0' 'x' >&2; echo >&2; }; "
      "if [ $RANK = 0 ]; then trap 'fill; echo > $DIR/last; exit 1' TERM; echo > $DIR/begun; "
      "fill; sleep 1000; fi; until [ -e $DIR/begun ]; do sleep 0.01; done; "
      "printf '{\"message\": {\"message\": \"needle\"}}' > $TORCHELASTIC_ERROR_FILE; exit 5";
  Argv argv{"sh", "-c",
            "{ \"$@\" & echo $! > $DIR/pid; wait $!; echo $? > $DIR/code; } 2>&1 >/dev/null | "
            "{ while ! [ -s $DIR/code ]; do sleep 0.01; done; }",
            "sh"};
  const Argv run_argv = driver(2, {"log=" + dir.file("logs")}, script);
  argv.insert(argv.end(), run_argv.begin(), run_argv.end());
  Command run(argv, {{"DIR", dir.path()}, {"TORCHELASTIC_ERROR_FILE", dir.file("up.json")}});
  REQUIRE(wait_until([&] { return exists(dir.file("up.json")); }));  // the run is over
  ::kill(pid_in(dir.file("pid")), SIGTERM);  // ends the wait for the console
  (void)run.wait();
  CHECK(content(dir.file("code")) == "5\n");
  CHECK(exists(dir.file("last")));
  std::string report;
  for (const std::string& name : dir.entries()) {
    if (name.ends_with("/report.txt")) report = content(dir.file(name));
  }
  CHECK_THAT(report, ContainsSubstring("its error.json:\n            | needle\n"));
}

TEST_CASE("a console that closes, or was never open, changes nothing") {
  TemporaryDirectory dir;
  for (const std::string redirection : {"2>&1 | head -c 1 >/dev/null", ">&- 2>&- <&-"}) {
    Argv argv{"sh", "-c", "{ \"$@\"; echo $? > $DIR/code; } " + redirection, "sh"};
    const Argv run_argv = driver(2, {"restarts=1"}, "[ $TORCHELASTIC_RESTART_COUNT = 1 ]");
    argv.insert(argv.end(), run_argv.begin(), run_argv.end());
    Command run(argv, {{"DIR", dir.path()}});
    (void)run.wait();
    CHECK(content(dir.file("code")) == "0\n");
  }
}

// A stack as large as the address space: no thread can be made, and processes can.
TEST_CASE("a failure is reported where no thread for files can be started") {
#if defined(__SANITIZE_THREAD__)
  WARN("ThreadSanitizer has a thread of its own: not tested");
#else
  Argv argv{"sh", "-c", "ulimit -s 137438953472 || exit 77; exec \"$@\"", "sh"};
  const Argv agent = driver(1, {}, "echo needle >&2; exit 3");
  argv.insert(argv.end(), agent.begin(), agent.end());
  Command run(argv);
  const ExitStatus status = run.wait();
  if (status == ExitStatus::exited(77)) {
    WARN("a hard limit on stacks: not tested");
    return;
  }
  CHECK(status == ExitStatus::exited(3));
  CHECK_THAT(run.err(), ContainsSubstring("            | needle"));
#endif
}
