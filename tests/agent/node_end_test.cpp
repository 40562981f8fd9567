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

TEST_CASE("a failure without budget ends both agents with its code, and both report it") {
  Cluster cluster;
  auto& first = cluster.start(1, "2:2", kRankOneFails, {"node_rank=0"});
  auto& second = cluster.start(1, "2:2", kRankOneFails, {"node_rank=1"});
  CHECK(first.wait() == ExitStatus::exited(7));
  CHECK(second.wait() == ExitStatus::exited(7));
  const std::string headline = report_of(1, 0);
  CHECK(count(first.err(), headline) == 1);
  CHECK(count(second.err(), headline) == 1);
  for (const Command* node : {&first, &second}) {
    CHECK(count(node->err(), kFirstFailure) == 1);
    CHECK_THAT(node->err(), ContainsSubstring("            | needle\n"));
    CHECK_THAT(node->err(), ContainsSubstring("1 rank was still running 1") &&
                                ContainsSubstring(" s later; ddprun stopped it "));
  }
  CHECK_FALSE(alive(pid_in(cluster.file("0"))));
}

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

TEST_CASE("when the budget is used up the report says so, and names the round") {
  Cluster cluster;
  const std::string script = "[ $RANK = 1 ] && exit 3; exec sleep 1000";
  auto& first = cluster.start(1, "2:2", script, {"restarts=2", "node_rank=0"});
  auto& second = cluster.start(1, "2:2", script, {"restarts=2", "node_rank=1"});
  CHECK(first.wait() == ExitStatus::exited(3));
  CHECK(second.wait() == ExitStatus::exited(3));
  CHECK_THAT(second.err(), ContainsSubstring("first failure of round 3\n"));
  CHECK_THAT(second.err(), ContainsSubstring("next      " + none_left(2)));
  CHECK(count(second.err(), "warning [W-EXIT] rank 1 ") == 2);
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

TEST_CASE("SIGTERM of one agent ends the run of two, with 143 and the reason on both") {
  Cluster cluster;
  auto& first = cluster.start(2, "2:2", kStayInRound, {"node_rank=0"});
  auto& second = cluster.start(2, "2:2", kStayInRound, {"node_rank=1"});
  for (const char* rank : {"1.0", "1.1", "1.2", "1.3"}) REQUIRE(cluster.has_line(rank));
  second.signal(SIGTERM);
  CHECK(second.wait() == ExitStatus::exited(143));
  CHECK(first.wait() == ExitStatus::exited(143));
  CHECK_THAT(second.err(),
             ContainsSubstring(up_to("2 ranks", stop_line(from_test(SIGTERM), 2, Duration(0)))));
  CHECK_THAT(second.err(), ContainsSubstring("note [STOP] 2 ranks gone "));
  CHECK_THAT(first.err(),
             ContainsSubstring("(ranks 2-3) left: " + received_text(from_test(SIGTERM)) +
                               "; 1 node remains"));
  for (const char* rank : {"1.0", "1.1", "1.2", "1.3"}) {
    CHECK_FALSE(alive(pid_in(cluster.file(rank))));
  }
}

TEST_CASE("SIGINT of the agent that hosts the coordinator ends the run on every node") {
  Cluster cluster(Cluster::Coordinator::kFirstAgent);
  auto& first = cluster.start(1, "1:2", kStayInRound, {"node_rank=0", "last_call_ms=5000"});
  auto& second = cluster.start(1, "1:2", kStayInRound, {"node_rank=1", "last_call_ms=5000"});
  REQUIRE(cluster.has_line("1.0"));
  REQUIRE(cluster.has_line("1.1"));
  first.signal(SIGINT);
  CHECK(second.wait() == ExitStatus::exited(130));
  CHECK(first.wait() == ExitStatus::exited(130));
  CHECK_THAT(second.err(), ContainsSubstring(received_text(from_test(SIGINT))));
  CHECK_FALSE(alive(pid_in(cluster.file("1.1"))));
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

TEST_CASE("a node that has finished ends with 0 when its coordinator is gone for good") {
  Cluster cluster;
  const std::string script = "echo $$$$ > $DIR/$RANK; [ $RANK = 1 ] || exec sleep 1000";
  auto& first = cluster.start(1, "2:2", script, {"node_rank=0", "coordinator_ms=500"});
  auto& second = cluster.start(1, "2:2", script, {"node_rank=1", "coordinator_ms=500"});
  REQUIRE(cluster.has_line("0"));
  const pid_t worker = pid_in(cluster.file("1"));
  REQUIRE(wait_until([&] { return !alive(worker); }));
  cluster.kill_daemon();
  CHECK(second.wait() == ExitStatus::exited(0));
  CHECK(first.wait() == ExitStatus::exited(kExitCoordinatorLost));
  CHECK_THAT(second.err(),
             ContainsSubstring(kSucceededHere +
                               "; how the other nodes ended is unknown: the coordinator "));
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

TEST_CASE("a second SIGTERM kills at once what ignores the first") {
  Cluster cluster;
  const std::string stubborn = "trap '' TERM; echo $$$$ > $DIR/$RANK; while :; do sleep 1; done";
  auto& only = cluster.start(1, "1:1", stubborn);
  REQUIRE(cluster.has_line("0"));
  only.signal(SIGTERM);
  REQUIRE(only.says("stopping 1 rank"));
  only.signal(SIGTERM);
  CHECK(only.wait() == ExitStatus::exited(143));  // long before the shutdown timeout
  CHECK_FALSE(alive(pid_in(cluster.file("0"))));
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

TEST_CASE("SIGTERM while a node waits for others leaves the rendezvous at once") {
  Cluster cluster;
  auto& waiting = cluster.start(1, "2:2", kStayInRound);
  REQUIRE(waiting.says("run test-run"));
  waiting.signal(SIGTERM);
  CHECK(waiting.wait() == ExitStatus::exited(143));
  CHECK_THAT(waiting.err(), ContainsSubstring(leaving_line(from_test(SIGTERM))));
  // Its place is free: two others make the round of two.
  auto& first = cluster.start(1, "2:2", "exit 0");
  auto& second = cluster.start(1, "2:2", "exit 0");
  CHECK(first.wait() == ExitStatus::exited(0));
  CHECK(second.wait() == ExitStatus::exited(0));
}

TEST_CASE(
    "a wait for nodes is logged from three seconds on, and ends at its limit with the option") {
  Cluster cluster;
  auto& waiting = cluster.start(1, "2:2", kStayInRound, {"join_ms=8000"});
  CHECK(waiting.wait() == ExitStatus::exited(kExitJoinTimeout));
  const std::string text = waiting.err();
  CHECK_THAT(text, ContainsSubstring("note [RUN] " + kWaitingForNodes + "1 of 2; connected: "));
  // The limit counts from the hello, the three seconds from the first attempt; rounded up.
  const auto limit = text.find("; gives up in ");
  REQUIRE(limit != std::string::npos);
  const std::string left = text.substr(limit + 14);
  CHECK(left.substr(1).starts_with(" s (--rdzv-conf join_timeout)"));
  CHECK((left.front() >= '1' && left.front() <= '6'));
  CHECK_THAT(text, ContainsSubstring("error [RUN] only 1 of at least 2 nodes joined within 8 s"));
  CHECK(count(text, kWaitingForNodes) == 1);
}

TEST_CASE("a coordinator that is not there is waited for, noted with its cause, and given up") {
  Cluster cluster;
  cluster.kill_daemon();
  auto& waiting = cluster.start(1, "2:2", kStayInRound, {"join_ms=8000"});
  CHECK(waiting.wait() == ExitStatus::exited(kExitJoinTimeout));
  const std::string text = waiting.err();
  CHECK(count(text, "note [RUN] waiting for the coordinator 127.0.0.1:") == 1);
  CHECK_THAT(text, ContainsSubstring("efused"));
  CHECK_THAT(text, ContainsSubstring("did not answer for 8 s (--rdzv-conf join_timeout=8)"));
}

TEST_CASE("SIGTERM while no coordinator answers ends the agent at once") {
  Cluster cluster;
  cluster.kill_daemon();
  auto& waiting = cluster.start(1, "2:2", kStayInRound);
  REQUIRE(waiting.says("run test-run"));
  waiting.signal(SIGTERM);
  CHECK(waiting.wait() == ExitStatus::exited(143));
}
