// ddprun as a program: exit codes, one sentence per mistake, programs that are not Python.
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>

#include <sys/stat.h>

#include "base/exit_status.hpp"
#include "tests/agent/command.hpp"
#include "tests/launcher/outcome.hpp"
#include "tests/support/free_port.hpp"
#include "tests/support/sentences.hpp"

using namespace ddprun;
using namespace ddprun::test;

namespace {

constexpr auto npos = std::string::npos;

struct Outcome {
  int code;
  std::string out;
  std::string err;
};

Outcome ddprun_with(Words words, Environment changes = {}) {
  words.insert(words.begin(), DDPRUN_PROGRAM);
  changes.emplace("TORCHELASTIC_ERROR_FILE", "");
  Command command(std::move(words), std::move(changes));
  const int code = command.wait().shell_code();
  return {code, command.out(), command.err()};
}

/// A socket that listens on a port of loopback, which no client gets once it is closed.
class Listener {
 public:
  Listener() : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(port_);
    REQUIRE(::bind(socket_, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0);
    REQUIRE(::listen(socket_, 1) == 0);
  }
  ~Listener() { ::close(socket_); }
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;
  [[nodiscard]] int port() const { return port_; }

 private:
  int socket_;
  std::uint16_t port_ = free_port();
};

long lines(const std::string& text) {
  return std::count(text.begin(), text.end(), '\n');
}

std::size_t longest_line(const std::string& text) {
  std::size_t longest = 0;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) longest = std::max(longest, line.size());
  return longest;
}

}  // namespace

TEST_CASE("help goes to stdout, ends with 0 and fits 80 columns off a terminal") {
  const auto help = ddprun_with({"--help"}, {{"COLUMNS", ""}});
  CHECK(help.code == 0);
  CHECK(help.err.empty());
  CHECK(longest_line(help.out) <= 80);
  CHECK_THAT(help.out, ContainsSubstring("--nproc-per-node, --nproc_per_node"));
  CHECK(longest_line(ddprun_with({"--help"}, {{"COLUMNS", "50"}}).out) <= 50);
}

TEST_CASE("the version is one line on stdout") {
  const auto version = ddprun_with({"--version"});
  CHECK(version.code == 0);
  CHECK_THAT(version.out, ContainsSubstring("ddprun "));
  CHECK(lines(version.out) == 1);
}

TEST_CASE("help and version that cannot be written are an error") {
  for (const std::string option : {"--help", "--version"}) {
    Command command({"sh", "-c", "exec \"$0\" " + option + " >/dev/full", DDPRUN_PROGRAM});
    CHECK(command.wait().shell_code() == 1);
    CHECK(command.err() ==
          "ddprun: error [SYSTEM] " + kCannotWriteOutput + ": No space left on device\n");
  }
}

TEST_CASE("a mistake on the command line is one line on stderr and exit code 2") {
  for (const Words& words :
       {Words{}, Words{"--bogus", "W"}, Words{"--nnodes=0", "W"},
        Words{"--standalone", "--nnodes=2", "W"}, Words{"--nproc-per-node=0", "W"},
        Words{"-r", "4", "W"}, Words{"--log-dir=/bin/true", "W"},
        Words{"--signals-to-handle=SIGKILL", "W"}, Words{"-m", "--no-python", "W"}}) {
    const auto refused = ddprun_with(words);
    INFO(refused.err);
    CHECK(refused.code == 2);
    CHECK(refused.out.empty());
    CHECK(lines(refused.err) == 1);
    CHECK(refused.err.starts_with("ddprun: error ["));
  }
}

TEST_CASE("a mistake is quoted without its line ends and escapes") {
  for (const std::string wild : {"a\nddprun: done", "a\x1b[2J", "a\xE2\x80\xAE"}) {
    for (const std::string option : {"--nnodes=", "--log-dir=/bin/true/", "--rdzv-conf="}) {
      const auto refused = ddprun_with({option + wild, "--bogus", "W"});
      INFO(refused.err);
      CHECK(refused.code == 2);
      CHECK(lines(refused.err) == 1);
      CHECK(refused.err.find_first_of("\x1b\xE2") == std::string::npos);
    }
  }
}

TEST_CASE("one node waits for a coordinator that another program runs, and names it at the end") {
  const auto alone = ddprun_with({"--rdzv-backend=c10d",
                                  "--rdzv-endpoint=127.0.0.1:" + std::to_string(free_port()),
                                  "--rdzv-conf=is_host=false,join_timeout=300ms", "true"});
  INFO(alone.err);
  CHECK(alone.code == kExitJoinTimeout);
  CHECK_THAT(alone.err, ContainsSubstring("--rdzv-conf join_timeout="));
}

TEST_CASE("a port in other hands when all nodes start becomes the coordinator's when it is free") {
  std::optional<Listener> taken(std::in_place);
  const Words words{DDPRUN_PROGRAM, "--nnodes=2", "--rdzv-backend=c10d",
                    "--rdzv-endpoint=127.0.0.1:" + std::to_string(taken->port()), "true"};
  Command first(words, {});
  Command second(words, {});
  REQUIRE(first.says("2 nodes, coordinator"));
  REQUIRE(second.says("2 nodes, coordinator"));
  taken.reset();
  CHECK(first.wait().shell_code() == 0);
  CHECK(second.wait().shell_code() == 0);
  const std::string said = first.err() + second.err();
  CHECK_THAT(said, ContainsSubstring("this node runs the coordinator"));
  CHECK(said.find("this node runs") == said.rfind("this node runs"));
}

TEST_CASE("a port that node rank 0 needs and cannot have is one sentence") {
  const Listener taken;
  const auto refused = ddprun_with({"--nnodes=2", "--node-rank=0", "--master-addr=127.0.0.1",
                                    "--master-port=" + std::to_string(taken.port()), "true"});
  CHECK(refused.code == 1);
  CHECK(lines(refused.err) == 1);
  CHECK_THAT(refused.err, ContainsSubstring("has to run the coordinator"));
  CHECK_THAT(refused.err, !ContainsSubstring("no --node-rank"));
}

TEST_CASE("a node whose rank was forgotten says so where node 0 has the port") {
  const Listener taken;
  const auto refused = ddprun_with({"--nnodes=2", "--master-addr=127.0.0.1",
                                    "--master-port=" + std::to_string(taken.port()), "true"});
  CHECK(refused.code == 1);
  CHECK_THAT(refused.err,
             ContainsSubstring("no --node-rank is given, so this node is node 0; if node 0 already "
                               "runs there, pass --node-rank=1"));
}

TEST_CASE("a launcher above learns of the mistake from the file it asked for") {
  const TemporaryDirectory directory;
  const auto refused =
      ddprun_with({"--nnodes=0", "W"}, {{"TORCHELASTIC_ERROR_FILE", directory.file("error.json")}});
  CHECK(refused.code == 2);
  const std::string record = content(directory.file("error.json"));
  CHECK_THAT(record, ContainsSubstring(R"("message")"));
  CHECK_THAT(record, ContainsSubstring("--nnodes='0'"));
}

TEST_CASE("an error file that is a FIFO without a reader does not hold a refusal up") {
  const TemporaryDirectory directory;
  const std::string fifo = directory.file("fifo");
  REQUIRE(::mkfifo(fifo.c_str(), 0600) == 0);
  const auto refused = ddprun_with({"--nnodes=0", "W"}, {{"TORCHELASTIC_ERROR_FILE", fifo}});
  CHECK(refused.code == 2);
  CHECK_THAT(refused.err, ContainsSubstring("ddprun: warning [ERROR-FILE] cannot write " + fifo));
}

TEST_CASE("a link called torchrun is torchrun: its messages, and no word is a command") {
  const TemporaryDirectory directory;
  const std::string torchrun = directory.file("torchrun");
  std::filesystem::create_symlink(DDPRUN_PROGRAM, torchrun);
  const auto outcome = [&](Words words) {
    words.insert(words.begin(), torchrun);
    Command command(std::move(words), {{"TORCHELASTIC_ERROR_FILE", ""}});
    const int code = command.wait().shell_code();
    return Outcome{code, command.out(), command.err()};
  };
  CHECK(outcome({}).err.starts_with("torchrun: error [USAGE] nothing to run"));
  CHECK_THAT(outcome({}).err, ContainsSubstring("(torchrun [options] training_script"));
  CHECK(outcome({"--help"}).out.starts_with("torchrun [options] training_script"));
  const auto failed = outcome({"sh", "-c", "exit 3"});
  CHECK(failed.code == 3);
  CHECK_THAT(failed.err, ContainsSubstring("torchrun: error [W-EXIT]"));
  CHECK_THAT(outcome({"true"}).err, ContainsSubstring("torchrun: done: "));
  const auto script = outcome({"stacks", "--help"});  // ddprun's command would print its help
  CHECK(script.code == 127);
  CHECK_THAT(script.err, ContainsSubstring("torchrun: error ["));
}

TEST_CASE("ddprun-launch passes each worker its local rank as the first argument") {
  const std::string launch = DDPRUN_PROGRAM "-launch";
  Command plain({launch, "--nproc-per-node=2", "echo", "x"});
  CHECK(plain.wait().shell_code() == 0);
  CHECK_THAT(plain.out(), ContainsSubstring("--local-rank=0 x\n"));
  CHECK_THAT(plain.out(), ContainsSubstring("--local-rank=1 x\n"));
  CHECK_THAT(plain.err(), ContainsSubstring("ddprun-launch: warning: "));
  Command with_env({launch, "--use-env", "echo", "x"});
  CHECK(with_env.wait().shell_code() == 0);
  CHECK(with_env.out() == "x\n");
}

TEST_CASE("a missing program is 127, one that may not be executed is 126, both named") {
  const auto missing = ddprun_with({"--no-python", "/no/such/program"});
  CHECK(missing.code == 127);
  CHECK_THAT(missing.err, ContainsSubstring("/no/such/program"));
  CHECK(ddprun_with({"no-such-program-anywhere"}).code == 127);
  const TemporaryDirectory directory;
  std::ofstream(directory.file("data")) << "no program\n";
  const auto data = ddprun_with({"--no-python", directory.file("data")});
  CHECK(data.code == 126);
  CHECK_THAT(data.err, ContainsSubstring(directory.file("data")));
}

TEST_CASE("a mistyped command is told which one is meant, unless it is a program") {
  for (const auto& [word, meant] : std::vector<std::pair<std::string, std::string>>{
           {"stats", "status?"}, {"stat.py", ""}, {"attatch", "attach"}, {"expl", "explain"}}) {
    const auto refused = ddprun_with({word, "x"}, {{"PATH", "/no/such/folder"}});
    INFO(refused.err);
    CHECK(refused.code == 127);
    CHECK(lines(refused.err) == 1);
    CHECK(meant.empty() != (refused.err.find("; did you mean ddprun " + meant) != npos));
  }
  const TemporaryDirectory directory;
  std::ofstream(directory.file("stats")) << "#!/bin/sh\nexit 5\n";
  REQUIRE(::chmod(directory.file("stats").c_str(), 0700) == 0);
  CHECK(ddprun_with({"stats"}, {{"PATH", directory.path() + ":/bin"}}).code == 5);
}

TEST_CASE("an option whose name is like that of a command is an option") {
  const TemporaryDirectory directory;
  std::ofstream(directory.file("run.toml")) << "nproc-per-node = 2\n";
  CHECK(ddprun_with({"--config", directory.file("run.toml"), "/bin/true"}).code == 0);
}

TEST_CASE("a script that does not exist is one sentence, and uses no restart") {
  const TemporaryDirectory directory;
  const std::string script = directory.file("train.py");
  const auto missing = ddprun_with({"--nproc-per-node=2", "--max-restarts=3", script});
  CHECK(missing.code == 2);
  CHECK(lines(missing.err) == 1);
  CHECK_THAT(missing.err, ContainsSubstring("error [EXEC] cannot run " + script + " on ") &&
                              ContainsSubstring(": " + kNoSuchFile + "\n"));
  CHECK(ddprun_with({"--run-path", script}).err.find(kNoSuchFile) != npos);
  const auto elsewhere = ddprun_with({"sub/train.py"});
  CHECK_THAT(elsewhere.err, ContainsSubstring(kNoSuchFile + " in /"));
}

TEST_CASE("a script without the permission to execute it is told what to try") {
  const TemporaryDirectory directory;
  const std::string script = directory.file("train");
  std::ofstream(script) << "#!/bin/sh\n";
  CHECK_THAT(ddprun_with({script}).err, ContainsSubstring(kTryChmod));
  const auto refused = ddprun_with({"--no-python", script});
  CHECK(refused.code == 126);
  CHECK_THAT(refused.err, ContainsSubstring(kTryChmod));
}

TEST_CASE("ddprun explain tells of a run's log directory, and refuses one without events") {
  TemporaryDirectory dir;
  const std::string logs = dir.file("logs");
  const Outcome run = ddprun_with({"--standalone", "--log-dir", logs, "sh", "-c", "exit 7"});
  REQUIRE(run.code == 7);
  const Outcome told = ddprun_with({"explain", logs});
  CHECK(told.code == 0);
  CHECK_THAT(told.out, ContainsSubstring(": failed with exit code 7; 1 round, 0 restarts"));
  CHECK_THAT(told.out, ContainsSubstring("[W-EXIT] ended with exit code 7, in round 1\n"));
  const Outcome empty = ddprun_with({"explain", dir.path()});
  CHECK(empty.code == 1);
  CHECK_THAT(empty.err, ContainsSubstring("there is no events.jsonl in " + dir.path()));
  CHECK(ddprun_with({"explain"}).code == 2);
}

TEST_CASE("with --http there are a health check and metrics while workers run") {
  const std::string port = std::to_string(free_port());
  const std::string fetch =
      "get() { exec 3<>/dev/tcp/127.0.0.1/" + port +
      "; printf 'GET %s HTTP/1.0\\r\\n\\r\\n' $1 >&3; cat <&3; exec 3>&-; }; get /healthz; "
      "until get /metrics | grep -q '^ddprun_all_workers_running 1'; do :; done; "
      "echo told; get /metrics; get /else";
  const Outcome run =
      ddprun_with({"--standalone", "--http", "127.0.0.1:" + port, "-t3", "bash", "-c", fetch});
  CHECK(run.code == 0);
  CHECK_THAT(run.out, ContainsSubstring("[default0]:ok\n"));
  CHECK_THAT(run.out, ContainsSubstring("[default0]:ddprun_store_connections 0\n"));
  CHECK_THAT(run.out, !ContainsSubstring("ddprun_output_bytes_total 0\n"));
  CHECK_THAT(run.out, ContainsSubstring("404 Not Found"));
  CHECK_THAT(run.err, ContainsSubstring("metrics at http://127.0.0.1:" + port + "/metrics"));
}

TEST_CASE("torchrun's variable for a health check opens a port that answers any probe") {
  const std::string port = std::to_string(free_port());
  const std::string probe =
      "exec 3<>/dev/tcp/127.0.0.1/" + port + "; printf 'GET / HTTP/1.0\\r\\n\\r\\n' >&3; cat <&3";
  const Outcome run = ddprun_with({"--standalone", "bash", "-c", probe},
                                  {{"TORCHELASTIC_HEALTH_CHECK_PORT", port}});
  CHECK(run.code == 0);
  CHECK_THAT(run.out, ContainsSubstring("200 OK"));
  CHECK_THAT(run.out, ContainsSubstring("\r\n\r\nok\n"));
}

TEST_CASE("a port of --http that is in use refuses the start, an inherited one costs a warning") {
  const Listener taken;
  const std::string port = std::to_string(taken.port());
  const Outcome refused = ddprun_with({"--standalone", "--http", "127.0.0.1:" + port, "true"});
  CHECK(refused.code != 0);
  CHECK_THAT(refused.err, ContainsSubstring("error [NET-PORT]"));
  CHECK_THAT(refused.err, ContainsSubstring("(--http)"));
  const Outcome warned =
      ddprun_with({"--standalone", "true"}, {{"TORCHELASTIC_HEALTH_CHECK_PORT", port}});
  CHECK(warned.code == 0);
  CHECK_THAT(warned.err, ContainsSubstring("warning [HTTP] TORCHELASTIC_HEALTH_CHECK_PORT: "));
}
