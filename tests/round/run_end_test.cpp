// How a run ends: by whom, with which code, and what later events change (nothing).
#include "tests/round/desk.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/sentences.hpp"

using namespace ddprun;
using namespace ddprun::round;
using namespace ddprun::protocol;

TEST_CASE("a leave or shutdown after a failure does not replace the verdict") {
  Desk desk;
  desk.join_two();
  desk.both_run();
  desk.say(2, desk.failed(1, 5));
  CHECK(desk.last<Stop>(1)->verdict->exit_code == 5);
  desk.shut_down();
  desk.say(1, Leave{143, "SIGTERM received", Round(1)});
  desk.say(2, Leave{143, "SIGTERM received", Round(1)});
  CHECK(desk.closed_.empty());
  desk.say(1, Stopped{Round(1), milliseconds(5), 1, 1});
  CHECK_FALSE(desk.last<Done>(1).has_value());
  desk.say(2, Stopped{Round(1), milliseconds(5), 0, 0});
  for (const std::uint64_t link : {1U, 2U}) {
    REQUIRE(desk.last<Done>(link).has_value());
    CHECK(desk.last<Done>(link)->exit_code == 5);
    REQUIRE(desk.last<Done>(link)->failure.has_value());
    CHECK(desk.last<Done>(link)->failure->killed == 1);
  }
}

namespace {

// Rank 0 of node "a" gave up waiting, or lost a connection.
Report witness(Desk& desk, ComplaintKind kind) {
  Report failed = desk.failed(1, 3);
  failed.failure->complaint.emplace().kind = kind;
  return failed;
}

Stopped with_rank(int rank, RankEnd end, const std::string& state) {
  Stopped stopped{Round(1), milliseconds(5), 0, 1};
  RankFacts& facts = stopped.ranks.emplace_back();
  facts.rank = Rank(rank);
  facts.pid = 100 + rank;
  facts.end = end;
  facts.state = state;
  return stopped;
}

}  // namespace

TEST_CASE("the verdict about a witness names the culprit, on whatever node it is") {
  Desk desk;
  desk.join_two();
  desk.both_run();
  desk.say(1, witness(desk, ComplaintKind::kCollective));
  Stopped own = with_rank(0, RankEnd::kFailed, "");
  own.ranks.front().complaint.emplace();
  desk.say(1, own);
  desk.say(2, with_rank(1, RankEnd::kRuns, "T"));
  const auto done = desk.last<Done>(2);
  REQUIRE(done.has_value());
  CHECK(done->exit_code == 3);
  REQUIRE(done->failure->finding.has_value());
  CHECK(done->failure->finding->ranks == std::vector<int>{1});
  CHECK_THAT(done->text, ContainsSubstring("rank 1 (local 0, pid 101) on b" + test::kOddOneOut));
}

TEST_CASE("ranks of another node that failed like the first are counted, witnesses are not") {
  for (const bool complains : {false, true}) {
    Desk desk;
    desk.join_two();
    desk.both_run();
    Report failed = complains ? witness(desk, ComplaintKind::kCollective) : desk.failed(1, 3);
    failed.failure->lines = {"gave up"};
    desk.say(1, failed);
    desk.say(2, failed);
    desk.say(1, Stopped{Round(1), milliseconds(5), 0, 0});
    desk.say(2, Stopped{Round(1), milliseconds(5), 0, 0});
    REQUIRE(desk.last<Done>(1).has_value());
    CHECK(desk.last<Done>(1)->failure->alike == (complains ? 0 : 1));
  }
}

TEST_CASE("a failure beside the first that was not alike is named, of any node") {
  for (const bool alike : {false, true}) {
    Desk desk;
    desk.join_two();
    desk.both_run();
    Report first = desk.failed(1, 3);
    first.failure->lines = {"gave up"};
    desk.say(1, first);
    Stopped other{Round(1), milliseconds(5), 0, 0};
    other.failure = first.failure;
    other.failure->worker.rank = Rank(1);
    other.failure->when += milliseconds(104);
    if (!alike) other.failure->lines = {"peer left"};
    desk.say(1, other);
    desk.say(2, Stopped{Round(1), milliseconds(5), 0, 0});
    REQUIRE(desk.last<Done>(1).has_value());
    CHECK(desk.last<Done>(1)->failure->also ==
          (alike ? "" : "rank 1 failed, too, 104 ms later: exit code 3, \"peer left\""));
  }
}

TEST_CASE("a round that its node gave up is a failure with the reason and the code of that") {
  Desk desk;
  desk.join_two();
  desk.both_run();
  Report failed = desk.failed(1, 3);
  failed.failure->status = ExitStatus::exited(114);
  failed.failure->given_up = Finding{"HANG", "no rank has written", {}, {}, "", ""};
  desk.say(1, failed);
  desk.say(1, Stopped{Round(1), milliseconds(5), 0, 1});
  desk.say(2, Stopped{Round(1), milliseconds(5), 0, 1});
  const auto done = desk.last<Done>(2);
  REQUIRE(done.has_value());
  CHECK(done->exit_code == 114);
  CHECK(done->text == "no rank has written; restarts are off (--max-restarts)");
  REQUIRE(done->failure->finding.has_value());
  CHECK(done->failure->finding->code == "HANG");
}

TEST_CASE("a round that was given up for good takes none of the restarts that are left") {
  Desk desk(3);
  desk.join_two();
  desk.both_run();
  Report failed = desk.failed(1, 3);
  failed.failure->status = ExitStatus::exited(117);
  failed.failure->given_up = Finding{"SLEEP", "rank 0 sleeps", {0}, {}, "", ""};
  failed.failure->given_up->no_restart = "the kernel holds it";
  desk.say(1, failed);
  desk.say(1, Stopped{Round(1), milliseconds(5), 0, 1});
  desk.say(2, Stopped{Round(1), milliseconds(5), 0, 1});
  const auto done = desk.last<Done>(2);
  REQUIRE(done.has_value());
  CHECK(done->exit_code == 117);
  CHECK(done->text == "rank 0 sleeps; the kernel holds it");
  CHECK(done->failure->no_restart == "the kernel holds it");
}

// What a node said of round 1 is lost with its link, twice, and so is its node.
TEST_CASE("a round that was interrupted, and the next one too, turns out to have succeeded") {
  Desk desk;
  desk.join_two();
  desk.both_run();
  Hello again = desk.hello("a", 2, 2);
  again.claim = Claim{{Round(1), "c1"}, 0, 2, RestartCount(0), NodeState::kSucceeded};
  for (const std::uint64_t link : {1U, 3U}) {
    desk.lose(link);
    desk.beat_for(seconds(6), {2});
    desk.say(2, desk.report(1, NodeState::kSucceeded));
    desk.say(link + 2, again);
  }
  CHECK(desk.last<StartRound>(2)->stamp.number == Round(3));
  CHECK_FALSE(desk.last<Done>(5));
  desk.say(5, desk.report(1, NodeState::kSucceeded));
  for (const std::uint64_t link : {2U, 5U}) {
    desk.say(link, Stopped{Round(3), milliseconds(5), 0, 1});
  }
  REQUIRE(desk.last<Done>(5));
  CHECK(desk.last<Done>(5)->exit_code == 0);
}

TEST_CASE("ranks of a node that succeeded early are suspects without a word of their node") {
  Desk desk;
  desk.join_two();
  desk.both_run();
  desk.say(2, desk.report(1, NodeState::kSucceeded));
  desk.say(1, witness(desk, ComplaintKind::kLostPeer));
  desk.say(1, Stopped{Round(1), milliseconds(5), 0, 0});
  const auto done = desk.last<Done>(1);
  REQUIRE(done.has_value());
  REQUIRE(done->failure->finding.has_value());
  CHECK(done->failure->finding->ranks == std::vector<int>{1});
}

TEST_CASE("a rank that lost its connection is not the first failure if another one failed") {
  enum class How { kReportedLater, kWhileStopping };
  for (const How how : {How::kReportedLater, How::kWhileStopping}) {
    Desk desk;
    desk.join_two();
    desk.both_run();
    desk.say(1, witness(desk, ComplaintKind::kLostPeer));
    Stopped stopped{Round(1), milliseconds(5), 0, 0};
    if (how == How::kReportedLater) {
      desk.after(milliseconds(20));
      desk.say(2, desk.failed(1, 9));
    } else {
      stopped.failure.emplace().status = ExitStatus::exited(9);
    }
    desk.say(1, Stopped{Round(1), milliseconds(5), 0, 0});
    desk.say(2, stopped);
    const auto done = desk.last<Done>(1);
    REQUIRE(done.has_value());
    CHECK(done->exit_code == 9);
    CHECK(done->failure->first.worker.host == "b");
    CHECK_FALSE(done->failure->finding.has_value());
  }
}

TEST_CASE(
    "a witness that claims another round and is lost is forgotten before the culprit is named") {
  Desk desk;
  desk.join_two();
  desk.both_run();
  desk.say(2, witness(desk, ComplaintKind::kLostPeer));
  Hello again = desk.hello_again();
  again.claim->stamp = {Round(9), "x"};
  again.claim->state = NodeState::kStopped;
  desk.say(2, again);
  desk.lose(2);
  desk.say(1, Stopped{Round(1), milliseconds(5), 0, 0});
  REQUIRE(desk.last<Done>(1).has_value());
  CHECK(desk.last<Done>(1)->failure->first.worker.host == "b");
}

TEST_CASE("a failure in the grace after one of another node is named beside it, and blamed never") {
  for (const bool of_witness : {false, true}) {
    Desk desk;
    desk.join_two();
    desk.both_run();
    Report first = desk.failed(1, 3);
    first.failure->lines = {"KeyError: 7"};
    desk.say(1, of_witness ? witness(desk, ComplaintKind::kLostPeer) : first);
    Stopped stopped{Round(1), milliseconds(5), 0, 0};
    stopped.failure.emplace().status = ExitStatus::exited(9);
    stopped.failure->worker.rank = Rank(1);
    stopped.failure->in_grace = true;
    desk.say(2, stopped);
    desk.say(1, Stopped{Round(1), milliseconds(5), 0, 0});
    const auto done = desk.last<Done>(1);
    REQUIRE(done.has_value());
    CHECK(done->failure->first.worker.host == "a");
    CHECK(done->failure->also == (of_witness ? "" : "rank 1 (b) failed, too: exit code 9"));
  }
}

TEST_CASE(
    "a rank that had raised and was slow to exit is named beside the first, and blamed never") {
  Desk desk;
  desk.join_two();
  desk.both_run();
  Report first = desk.failed(1, 1);
  first.failure->lines = {"ConnectionResetError: [Errno 104] Connection reset by peer"};
  desk.say(1, first);
  Stopped stopped{Round(1), milliseconds(5), 0, 1};
  stopped.failure.emplace().status = ExitStatus::exited(1);
  stopped.failure->worker.rank = Rank(1);
  stopped.failure->lines = {"ValueError: bad batch"};
  stopped.failure->is_slow = true;
  desk.say(2, stopped);
  desk.say(1, Stopped{Round(1), milliseconds(5), 0, 0});
  const auto done = desk.last<Done>(1);
  REQUIRE(done.has_value());
  CHECK(done->failure->first.worker.host == "a");
  CHECK(done->failure->also ==
        "rank 1 (b): its last words were \"ValueError: bad batch\"" + test::kNotExitedYet);
}

TEST_CASE(
    "a shutdown timeout of one node does not delay the verdict, of all it does by 1 h at most") {
  for (const bool all : {false, true}) {
    Desk desk;
    Hello first = desk.hello("a", 2, 2);
    Hello patient = desk.hello("b", 2, 2);
    patient.stop_timeout = kDurationMax;
    if (all) first.stop_timeout = kDurationMax;
    desk.say(1, first);
    desk.say(2, patient);
    desk.both_run();
    desk.say(1, desk.failed(1, 5));
    CHECK(desk.last<Stop>(2)->grace == kDurationMax);
    desk.say(1, Stopped{Round(1), milliseconds(5), 0, 1});
    const Duration limit = all ? Duration(std::chrono::hours(1)) : Duration(Hello().stop_timeout);
    desk.beat_for(limit + kStopMargin - seconds(1), {1, 2});
    CHECK_FALSE(desk.last<Done>(1).has_value());
    desk.beat_for(seconds(1), {1, 2});
    REQUIRE(desk.last<Done>(1).has_value());
    CHECK(desk.last<Done>(1)->exit_code == 5);
  }
}

TEST_CASE("the verdict waits for as long as half of the nodes may need to end their workers") {
  Desk desk;
  int link = 0;
  for (const int limit : {1, 2, 1440}) {
    Hello hello = desk.hello("node" + std::to_string(link), 3, 3);
    hello.stop_timeout = std::chrono::minutes(limit);
    desk.say(static_cast<std::uint64_t>(++link), hello);
  }
  desk.say(1, desk.failed(1, 5));
  desk.beat_for(std::chrono::minutes(2) + kStopMargin - seconds(1), {1, 2, 3});
  CHECK_FALSE(desk.last<Done>(1).has_value());
  desk.beat_for(seconds(1), {1, 2, 3});
  CHECK(desk.last<Done>(1).has_value());
}

TEST_CASE("until a restart runs everywhere, a stop of the run ends it with the failure") {
  enum class By { kLeaver, kOther, kShutdown, kAfterwards };
  for (const By by : {By::kLeaver, By::kOther, By::kShutdown, By::kAfterwards}) {
    Desk desk(3);
    desk.join_two();
    desk.both_run();
    desk.say(2, desk.failed(1, 5));
    REQUIRE(desk.last<StartRound>(2)->stamp.number == Round(2));
    desk.say(1, desk.report(2, NodeState::kRunning));
    desk.say(2, desk.report(2, NodeState::kStarting));
    if (by == By::kAfterwards) desk.say(2, desk.report(2, NodeState::kRunning));
    if (by == By::kLeaver) desk.say(2, Leave{143, "SIGTERM received", Round(1)});
    if (by == By::kShutdown) desk.shut_down();
    if (by == By::kOther || by == By::kAfterwards) {
      desk.say(1, Leave{143, "SIGTERM received", Round(2)});
    }
    desk.say(1, Stopped{Round(2), milliseconds(5), 0, 1});
    desk.say(2, Stopped{Round(2), milliseconds(5), 0, 0});
    REQUIRE(desk.last<Done>(2).has_value());
    const bool failed = by != By::kAfterwards;
    CHECK(desk.last<Done>(2)->exit_code == (failed ? 5 : 143));
    REQUIRE(desk.last<Done>(2)->failure.has_value() == failed);
    if (!failed) continue;
    CHECK(desk.last<Done>(2)->failure->round == Round(1));
    CHECK_FALSE(desk.last<Done>(2)->failure->no_restart.empty());
  }
}

TEST_CASE("a node that cannot start the round after a failure ends the run with its own error") {
  Desk desk(3);
  desk.join_two();
  desk.both_run();
  desk.say(2, desk.failed(1, 5));
  desk.say(1, desk.report(2, NodeState::kRunning));
  desk.say(2, Leave{127, "cannot run x: no such file", Round(2)});
  desk.say(1, Stopped{Round(2), milliseconds(5), 0, 1});
  CHECK(desk.last<Done>(1)->exit_code == 127);
}

TEST_CASE("a leave after a verdict without a failure is answered with it at once") {
  Desk desk;
  desk.join_two();
  desk.say(1, Leave{130, "SIGINT received", Round(1)});
  desk.say(2, Leave{143, "SIGTERM received", Round(1)});
  REQUIRE(desk.last<Done>(2).has_value());
  CHECK(desk.last<Done>(2)->exit_code == 130);
  CHECK(desk.last<Done>(2)->node_lost);
  CHECK(desk.closed_ == std::vector<LinkId>{LinkId(1), LinkId(2)});
}

TEST_CASE("the node that runs the coordinator ends the run when it leaves") {
  Desk desk;
  Hello host = desk.hello("a", 1, 2);
  host.runs_coordinator = true;
  desk.say(1, host);
  desk.say(2, desk.hello("b", 1, 2));
  desk.say(1, Leave{143, "SIGTERM received", Round(1)});
  desk.say(2, Stopped{Round(1), milliseconds(5), 0, 1});
  CHECK(desk.last<Done>(2)->exit_code == 143);
  CHECK(desk.last<Done>(2)->text.find("it runs the coordinator") != std::string::npos);
  CHECK(desk.last<Done>(2)->node_lost);
}

TEST_CASE("nodes that had finished and came back alone to a new coordinator end with 0") {
  Desk desk;
  Hello hello = desk.hello("b", 2, 2);
  hello.claim = Claim{{Round(4), "c0"}, 1, 2, RestartCount(0), NodeState::kSucceeded};
  desk.say(1, hello);
  for (int second = 0; second < 610 && !desk.last<Done>(1); ++second) {
    desk.say(1, Beat{});
    desk.after(seconds(1));
  }
  REQUIRE(desk.last<Done>(1).has_value());
  CHECK(desk.last<Done>(1)->exit_code == 0);
}

TEST_CASE("a shutdown of the coordinator stops the workers first and then ends all nodes") {
  Desk desk;
  desk.join_two();
  for (const Action& action : desk.run_.step(Shutdown{143, "coordinator got SIGTERM"}, desk.now_)) {
    CHECK_FALSE((std::holds_alternative<Send>(action) &&
                 std::holds_alternative<Done>(std::get<Send>(action).message)));
  }
  desk.say(1, Stopped{Round(1), milliseconds(1), 0, 0});
  desk.say(2, Stopped{Round(1), milliseconds(1), 0, 0});
  CHECK(desk.last<Done>(2)->exit_code == 143);
}

TEST_CASE("a verdict waits for a node that gives up a worker after SIGKILL, and no longer") {
  const Duration longest = Hello().stop_timeout + kWaitAfterKill;
  const Duration limit = Hello().stop_timeout + kStopMargin;
  REQUIRE(longest < limit);
  Desk desk;
  desk.join_two();
  desk.shut_down();
  desk.beat_for(longest, {1, 2});
  desk.say(1, Stopped{Round(1), milliseconds(40'000), 1, 1});
  CHECK_FALSE(desk.last<Done>(1).has_value());
  desk.beat_for(limit - longest - milliseconds(1), {1, 2});
  CHECK_FALSE(desk.last<Done>(1).has_value());
  desk.after(milliseconds(1));  // the other one never reports its end
  REQUIRE(desk.last<Done>(1).has_value());
  CHECK(desk.last<Done>(1)->exit_code == 143);
  CHECK_FALSE(desk.last<Done>(1)->node_lost);
}

// No agent was sent a verdict: the workers of the lost node have not succeeded, as far as is known.
TEST_CASE("a node that was lost with its workers is missed when another reconnects as finished") {
  Desk desk;
  desk.join_two();
  desk.both_run();
  desk.lose(1);
  desk.lose(2);
  Hello finished = desk.hello_again();
  finished.claim->state = NodeState::kSucceeded;
  desk.say(3, finished);
  desk.beat_for(seconds(700), {3});
  REQUIRE(desk.last<Done>(3).has_value());
  CHECK(desk.last<Done>(3)->exit_code == kExitNodeLost);
  CHECK(desk.last<Done>(3)->node_lost);
}

TEST_CASE("a failure takes one restart, also if all links break before the next round starts") {
  for (const bool reported_first : {true, false}) {
    Desk desk(3);
    desk.join_two();
    desk.both_run();
    desk.say(1, Reconnecting{"no heartbeat for 5 s"});  // the next round waits for it
    desk.say(2, desk.failed(1, 5));
    CHECK(desk.run_.status(desk.now_).restarts == RestartCount(1));
    desk.lose(2);
    desk.after(seconds(5));
    REQUIRE_FALSE(desk.run_.has_agents());
    Hello back = desk.hello_again();
    back.claim->state = NodeState::kFailed;
    Hello first = desk.hello("a", 2, 2);
    first.claim = Claim{{Round(1), "c1"}, 0, 2, RestartCount(0), NodeState::kRunning};
    desk.say(4, back);
    if (reported_first) desk.say(4, desk.failed(1, 5));
    desk.say(3, first);
    if (!reported_first) desk.say(4, desk.failed(1, 5));
    REQUIRE(desk.last<StartRound>(4).has_value());
    CHECK(desk.last<StartRound>(4)->restarts == RestartCount(1));
  }
}

TEST_CASE("a round says whether a failure of it may end the run") {
  Desk none;
  none.say(1, none.hello("a", 1, 1));
  CHECK(none.last<StartRound>(1)->may_be_last);
  Desk one(1);
  one.say(1, one.hello("a", 1, 1));
  CHECK_FALSE(one.last<StartRound>(1)->may_be_last);
  one.say(1, one.failed(1, 7));
  one.after(seconds(1));
  CHECK(one.last<StartRound>(1)->stamp.number == Round(2));
  CHECK(one.last<StartRound>(1)->may_be_last);
}

TEST_CASE("with --min-uptime the second early failure in a row may end the run") {
  Desk desk(9);
  auto hello = desk.hello("a", 1, 1);
  hello.terms.min_uptime = seconds(60);
  desk.say(1, hello);
  CHECK_FALSE(desk.last<StartRound>(1)->may_be_last);
  desk.say(1, desk.failed(1, 7));
  desk.after(seconds(1));
  CHECK(desk.last<StartRound>(1)->may_be_last);
}
