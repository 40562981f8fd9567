// How a run of several agents ends: failures, signals, waits that are in vain.
#include <signal.h>

#include "tests/agent/cluster.hpp"
#include "tests/agent/said.hpp"
#include "tests/support/sentences.hpp"

using namespace ddprun;
using namespace ddprun::test;

namespace {

const std::string kRankOneFails =
    "echo $$$$ > $DIR/$RANK; [ $RANK = 0 ] && exec sleep 1000; "
    "while ! [ -s $DIR/0 ]; do sleep 0.01; done; echo needle >&2; exit 7";

}  // namespace

TEST_CASE("every console has the whole report, wherever the rank failed") {
  Cluster cluster(Cluster::Coordinator::kFirstAgent);
  auto& first = cluster.start(1, "2:2", kRankOneFails, {"node_rank=0"});
  auto& second = cluster.start(1, "2:2", kRankOneFails, {"node_rank=1"});
  CHECK(first.wait() == ExitStatus::exited(7));
  CHECK(second.wait() == ExitStatus::exited(7));
  CHECK_THAT(first.err(), ContainsSubstring(": 1 rank here\n  nodes     ") &&
                              ContainsSubstring("(this node)\n"));
  CHECK_THAT(first.err(), ContainsSubstring("  evidence  " + kLastLines + ":\n"));
  CHECK_THAT(first.err(), ContainsSubstring("            | needle\n"));
  CHECK_THAT(second.err(), ContainsSubstring("            | needle\n"));
  CHECK(count(second.err(), report_of(1, 0)) == 1);
  CHECK(count(second.err(), "rank 1 (local 0, pid ") == 1);
}

TEST_CASE("the launcher above gets the worker's error where it was, and a sentence elsewhere") {
  Cluster cluster;
  const std::string script =
      "[ $RANK = 0 ] && exec sleep 1000; "
      "echo '{\"message\": {\"message\": \"needle\"}}' > $TORCHELASTIC_ERROR_FILE; exit 9";
  Argv options{"rdzv=" + std::to_string(cluster.port()), "nodes=2:2"};
  const auto node = [&](const std::string& rank) {
    Argv all = options;
    all.push_back("node_rank=" + rank);
    return Command(driver(1, all, script),
                   {{"TORCHELASTIC_ERROR_FILE", cluster.file("error." + rank)}});
  };
  auto first = node("0");
  auto second = node("1");
  CHECK(first.wait() == ExitStatus::exited(9));
  CHECK(second.wait() == ExitStatus::exited(9));
  CHECK_THAT(content(cluster.file("error.1")), ContainsSubstring("\"errorCode\":9"));
  CHECK_THAT(content(cluster.file("error.0")), ContainsSubstring("failed: exit code 9"));
}

TEST_CASE("a program that one node cannot start ends the run with 127 on both") {
  Cluster cluster;
  auto& first = cluster.start(1, "2:2", kStayInRound, {"node_rank=0"});
  Command second({AGENT_DRIVER, "1", "rdzv=" + std::to_string(cluster.port()), "nodes=2:2",
                  "node_rank=1", "--", "/no/such/program"});
  CHECK(second.wait() == ExitStatus::exited(127));
  CHECK(first.wait() == ExitStatus::exited(127));
  CHECK_THAT(second.err(), ContainsSubstring("error [EXEC] cannot run /no/such/program on "));
  CHECK_THAT(first.err(), ContainsSubstring("/no/such/program"));
}

TEST_CASE("SIGTERM of both agents while a failed run is stopped keeps its report and its code") {
  const std::string script =
      "if [ $RANK = 0 ]; then trap '' TERM; echo $$$$ > $DIR/0; while :; do sleep 1; done; fi; "
      "while ! [ -s $DIR/0 ]; do sleep 0.01; done; echo needle >&2; exit 7";
  Cluster cluster(Cluster::Coordinator::kFirstAgent);
  auto& first = cluster.start(1, "2:2", script, {"node_rank=0", "timeout_ms=1500"});
  auto& second = cluster.start(1, "2:2", script, {"node_rank=1", "timeout_ms=1500"});
  REQUIRE(first.says(" failed: exit code 7; "));
  second.signal(SIGTERM);
  first.signal(SIGTERM);
  CHECK(second.wait() == ExitStatus::exited(7));
  CHECK(first.wait() == ExitStatus::exited(7));
  CHECK_THAT(first.err(), ContainsSubstring("            | needle\n"));
  CHECK(count(second.err(), report_of(1, 0)) == 1);
}

TEST_CASE("SIGTERM while a failed round gives way to its restart ends the run with the failure") {
  // Rank 0 keeps its node in the first round until both nodes have their signal.
  const std::string script =
      "[ $RANK = 0 ] && trap '' TERM; echo $$$$ > $DIR/$DDPRUN_ROUND.$RANK; "
      "if [ $RANK = 0 ]; then until [ -e $DIR/end ]; do sleep 0.01; done; exit 0; fi; "
      "until [ -s $DIR/1.0 ]; do sleep 0.01; done; [ $DDPRUN_ROUND = 1 ] || exec sleep 1000; "
      "exit 7";
  Cluster cluster;
  const Argv options{"restarts=3"};
  auto& first = cluster.start(1, "2:2", script, options);
  auto& second = cluster.start(1, "2:2", script, options);
  REQUIRE(first.says("restart 1 of 3"));
  REQUIRE(second.says("restart 1 of 3"));
  REQUIRE(cluster.has_line("2.1"));
  first.signal(SIGTERM);
  second.signal(SIGTERM);
  REQUIRE(first.says("note [STOP] SIGTERM from "));
  REQUIRE(second.says("note [STOP] SIGTERM from "));
  Command touch({"touch", cluster.file("end")});
  CHECK(touch.wait().success());
  CHECK(first.wait() == ExitStatus::exited(7));
  CHECK(second.wait() == ExitStatus::exited(7));
  const std::string both = first.err() + second.err();
  CHECK_THAT(both, ContainsSubstring("next      not restarted: "));
  CHECK(count(both, kFirstFailure) == 2);
}

TEST_CASE(
    "a success does not wait for what another node's workers left, nor does SIGTERM undo it") {
  const std::string script =
      "[ $RANK = 0 ] || { sh -c 'trap \"exit 0\" TERM; echo $$$$ > $DIR/helper; "
      "while :; do sleep 0.01; done' & until [ -s $DIR/helper ]; do sleep 0.01; done; }";
  Cluster cluster(Cluster::Coordinator::kFirstAgent);
  auto& first = cluster.start(1, "2:2", script, {"node_rank=0"});
  auto& second = cluster.start(1, "2:2", script, {"node_rank=1", "straggler_ms=600000"});
  CHECK(first.wait() == ExitStatus::exited(0));
  const pid_t helper = pid_in(cluster.file("helper"));
  CHECK(alive(helper));
  second.signal(SIGTERM);
  CHECK(second.wait() == ExitStatus::exited(0));
  CHECK_FALSE(alive(helper));
}

TEST_CASE("after a failure a second SIGTERM gives up the whole report, not the failure") {
  Cluster cluster(Cluster::Coordinator::kFirstAgent);
  const std::string script =
      "if [ $RANK = 0 ]; then trap '' TERM; echo $$$$ > $DIR/0; while :; do sleep 0.01; done; fi; "
      "until [ -s $DIR/0 ]; do sleep 0.01; done; exit 7";
  auto& first = cluster.start(1, "2:2", script, {"node_rank=0"});
  auto& second = cluster.start(1, "2:2", script, {"node_rank=1"});
  REQUIRE(first.says(") failed: exit code 7"));
  second.signal(SIGTERM);
  REQUIRE(second.says("note [STOP] SIGTERM from "));
  second.signal(SIGTERM);
  CHECK(second.wait() == ExitStatus::exited(7));
  CHECK_THAT(second.err(), ContainsSubstring(report_of(1, 0)));
  first.signal(SIGTERM);
  REQUIRE(first.says("note [STOP] SIGTERM from "));
  first.signal(SIGTERM);
  CHECK(first.wait() == ExitStatus::exited(7));
}

TEST_CASE("a coordinator that is not there is waited for, noted with its cause, and given up") {
  Cluster cluster;
  cluster.kill_daemon();
  auto& waiting = cluster.start(1, "2:2", kStayInRound, {"join_ms=5000"});
  CHECK(waiting.wait() == ExitStatus::exited(kExitJoinTimeout));
  const std::string text = waiting.err();
  CHECK(count(text, "note [RUN] waiting for the coordinator 127.0.0.1:") == 1);
  CHECK_THAT(text, ContainsSubstring("efused"));
  CHECK_THAT(text, ContainsSubstring("did not answer for 5 s (--rdzv-conf join_timeout=5)"));
}

TEST_CASE("SIGTERM while no coordinator answers ends the agent at once") {
  Cluster cluster;
  cluster.kill_daemon();
  auto& waiting = cluster.start(1, "2:2", kStayInRound);
  REQUIRE(waiting.says("run test-run"));
  waiting.signal(SIGTERM);
  CHECK(waiting.wait() == ExitStatus::exited(143));
}
