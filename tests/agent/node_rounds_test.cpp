// Rounds over several agents: ranks, restarts, nodes that are lost, leave or come late.
#include <signal.h>

#include <sstream>

#include "tests/agent/cluster.hpp"
#include "tests/agent/said.hpp"

using namespace ddprun;
using namespace ddprun::test;

namespace {

std::vector<std::string> words(const std::string& text) {
  std::istringstream in(text);
  return {std::istream_iterator<std::string>(in), {}};
}

}  // namespace

TEST_CASE(
    "two agents with one and two workers: ranks, sizes and roles are those of the whole run") {
  Cluster cluster;
  const std::string script =
      "echo $RANK $WORLD_SIZE $LOCAL_RANK $LOCAL_WORLD_SIZE $GROUP_RANK $GROUP_WORLD_SIZE "
      "$ROLE_RANK $ROLE_WORLD_SIZE $ROLE_NAME $TORCHELASTIC_RESTART_COUNT > $DIR/env.$RANK; "
      "echo $MASTER_ADDR:$MASTER_PORT > $DIR/master.$RANK";
  auto& first = cluster.start(1, "2:2", script, {"node_rank=0", "role=a"});
  auto& second = cluster.start(2, "2:2", script, {"node_rank=1", "role=b"});
  CHECK(first.wait() == ExitStatus::exited(0));
  CHECK(second.wait() == ExitStatus::exited(0));
  CHECK(content(cluster.file("env.0")) == "0 3 0 1 0 2 0 1 a 0\n");
  CHECK(content(cluster.file("env.1")) == "1 3 0 2 1 2 0 2 b 0\n");
  CHECK(content(cluster.file("env.2")) == "2 3 1 2 1 2 1 2 b 0\n");
  const std::string master = content(cluster.file("master.0"));
  CHECK_THAT(master, ContainsSubstring("127.0.0.1:"));
  CHECK(master != "127.0.0.1:" + std::to_string(cluster.port()) + "\n");
  CHECK(content(cluster.file("master.1")) == master);
  CHECK(content(cluster.file("master.2")) == master);
  CHECK_THAT(first.err(), ContainsSubstring(" run test-run: 2 nodes, coordinator 127.0.0.1:"));
  CHECK_THAT(first.err(), ContainsSubstring(up_to("after ", all_succeeded(3, 2))));
  CHECK_THAT(second.err(), ContainsSubstring(up_to("after ", all_succeeded(3, 2))));
}

TEST_CASE("a worker that fails restarts the workers of both nodes, once, on a fresh store") {
  Cluster cluster;
  const std::string script =
      "echo $MASTER_PORT $TORCHELASTIC_RESTART_COUNT > $DIR/$DDPRUN_ROUND.$RANK; "
      "[ $DDPRUN_ROUND = 2 ] && exit 0; [ $RANK = 3 ] || exec sleep 1000; "
      "while ! [ -s $DIR/1.0 -a -s $DIR/1.1 -a -s $DIR/1.2 ]; do sleep 0.01; done; exit 5";
  auto& first = cluster.start(2, "2:2", script, {"restarts=2", "node_rank=0"});
  auto& second = cluster.start(2, "2:2", script, {"restarts=2", "node_rank=1"});
  CHECK(first.wait() == ExitStatus::exited(0));
  CHECK(second.wait() == ExitStatus::exited(0));
  std::string ports;
  for (const char* round : {"1", "2"}) {
    const std::string zero = content(cluster.file(std::string(round) + ".0"));
    for (const char* rank : {"1", "2", "3"}) {
      CHECK(content(cluster.file(std::string(round) + "." + rank)) == zero);
    }
    CHECK(words(zero).at(1) == (std::string(round) == "1" ? "0" : "1"));
    CHECK(words(zero).at(0) != ports);
    ports = words(zero).at(0);
  }
  for (auto* one : {&first, &second}) {
    CHECK_THAT(one->err(), ContainsSubstring("round 1 -> 2: rank 3 ("));
    CHECK_THAT(one->err(), ContainsSubstring("failed: exit code 5; restart 1 of 2; 4 ranks on 2"));
    CHECK_THAT(one->err(), ContainsSubstring("; 1 restart\n"));
  }
  CHECK(count(second.err(), death_of(3, 1)) == 1);
  CHECK(count(first.err(), "[W-") == 0);
}

TEST_CASE("an agent that is killed is lost at once: the others continue, and no log is wiped") {
  Cluster cluster;
  const std::string script =
      "echo $WORLD_SIZE.$TORCHELASTIC_RESTART_COUNT > "
      "$DIR/size.$DDPRUN_ROUND.$RANK; " +
      kStayInRound;
  const std::string logs = cluster.file("logs");
  auto& first = cluster.start(1, "1:2", script, {"log=" + logs, "redirects=1", "node_rank=0"});
  auto& second = cluster.start(1, "1:2", script, {"node_rank=1"});
  REQUIRE(cluster.has_line("1.1"));
  const pid_t orphan = pid_in(cluster.file("1.1"));
  second.signal(SIGKILL);
  REQUIRE(cluster.has_line("2.0"));
  CHECK(content(cluster.file("size.2.0")) == "1.0\n");
  CHECK(wait_until([&] { return !alive(orphan); }));
  CHECK(wait_until([&] { return first.err().find("lost ") != std::string::npos; }));
  int attempts = 0;
  for (const std::string& name : cluster.directory().entries()) {
    const auto base = name.rfind('/') + 1;
    const std::string last = name.substr(base);
    if (last == "attempt_0" || last == "attempt_0_round_2") ++attempts;
  }
  CHECK(attempts == 2);
  first.signal(SIGTERM);
  CHECK(first.wait() == ExitStatus::exited(143));
}

TEST_CASE("a third agent that comes late gets a place in a new round, which costs no restart") {
  Cluster cluster;
  const std::string script =
      "echo $WORLD_SIZE.$TORCHELASTIC_RESTART_COUNT > "
      "$DIR/size.$DDPRUN_ROUND.$RANK; " +
      kStayInRound;
  cluster.start(1, "2:3", script, {"last_call_ms=50"});
  cluster.start(1, "2:3", script, {"last_call_ms=50"});
  REQUIRE(cluster.has_line("1.0"));
  REQUIRE(cluster.has_line("1.1"));
  const std::string before = content(cluster.file("1.0"));
  cluster.start(1, "2:3", script, {"last_call_ms=50"});
  for (const char* rank : {"2.0", "2.1", "2.2"}) CHECK(cluster.has_line(rank));
  CHECK(content(cluster.file("size.2.2")) == "3.0\n");
  for (std::size_t i = 0; i < 3; ++i) cluster.agent(i).signal(SIGTERM);
  for (std::size_t i = 0; i < 3; ++i) CHECK(cluster.agent(i).wait() == ExitStatus::exited(143));
}

TEST_CASE("an agent that has finished waits for the others, and late ones end with it") {
  Cluster cluster;
  const std::string script =
      "echo here > $DIR/$RANK; [ $RANK = 0 ] && exit 0; "
      "while ! [ -e $DIR/go ]; do sleep 0.01; done";
  auto& first = cluster.start(1, "2:2", script, {"node_rank=0"});
  auto& second = cluster.start(1, "2:2", script, {"node_rank=1"});
  REQUIRE(cluster.has_line("0"));
  REQUIRE(cluster.has_line("1"));
  CHECK(first.err().find("done") == std::string::npos);
  {
    Command touch({"touch", cluster.file("go")});
    CHECK(touch.wait() == ExitStatus::exited(0));
  }
  CHECK(first.wait() == ExitStatus::exited(0));
  CHECK(second.wait() == ExitStatus::exited(0));
  CHECK_THAT(second.err(), ContainsSubstring(up_to("after ", all_succeeded(2, 2))));
}

TEST_CASE("one agent too many is a spare, and ends with the run") {
  Cluster cluster;
  const std::string script = "echo here > $DIR/$RANK; while ! [ -e $DIR/go ]; do sleep 0.01; done";
  cluster.start(1, "2:2", script);
  cluster.start(1, "2:2", script);
  REQUIRE(cluster.has_line("0"));
  REQUIRE(cluster.has_line("1"));
  auto& spare = cluster.start(1, "2:2", script);
  CHECK(spare.says("this node waits as a spare"));
  {
    Command touch({"touch", cluster.file("go")});
    CHECK(touch.wait() == ExitStatus::exited(0));
  }
  for (std::size_t i = 0; i < 3; ++i) CHECK(cluster.agent(i).wait() == ExitStatus::exited(0));
}

TEST_CASE("a coordinator that is killed and started again stops no worker and ends no run") {
  Cluster cluster;
  const std::string script =
      "echo $$$$ > $DIR/$DDPRUN_ROUND.$RANK; while ! [ -e $DIR/go ]; do sleep 0.01; done";
  auto& first = cluster.start(1, "2:2", script);
  auto& second = cluster.start(1, "2:2", script);
  REQUIRE(cluster.has_line("1.0"));
  REQUIRE(cluster.has_line("1.1"));
  const int port = cluster.port();
  cluster.kill_daemon();
  CHECK(first.says("lost the coordinator 127.0.0.1:"));
  cluster.start_daemon(port);
  CHECK(first.says("answers again"));
  CHECK(second.says("answers again"));
  {
    Command touch({"touch", cluster.file("go")});
    CHECK(touch.wait() == ExitStatus::exited(0));
  }
  CHECK(first.wait() == ExitStatus::exited(0));
  CHECK(second.wait() == ExitStatus::exited(0));
  CHECK_FALSE(exists(cluster.file("2.0")));
}
