// Whether a round grows: all ranks of the one before live, and can take the next one as they are.
#include "tests/round/desk.hpp"
#include "tests/support/catch.hpp"

using namespace ddprun;
using namespace ddprun::round;
using namespace ddprun::protocol;

namespace {

Report may_grow(int round, std::uint16_t port = 5000, bool may = true) {
  Report report{Round(round), NodeState::kRunning, port, std::nullopt};
  report.may_grow = may;
  return report;
}

/// Nodes "a" and "b" of at most three, in round 1.
struct Growing : Desk {
  Growing() : Desk(3) {
    say(1, hello("a", 1, 3, Milliseconds(100)));
    say(2, hello("b", 1, 3));
    after(milliseconds(200));
    REQUIRE(last<StartRound>(2)->group_size == 2);
    both_run();
  }
  void both_may_grow() {
    say(1, may_grow(1, 5001));
    say(2, may_grow(1));
  }
  void third_joins() { say(3, hello("c", 1, 3)); }
  /// Round 2 is one of three nodes, and grows.
  void grow() {
    both_may_grow();
    third_joins();
    REQUIRE(last<StartRound>(3)->grows);
    for (const std::uint64_t link : {1U, 2U, 3U}) say(link, report(2, NodeState::kStarting, 5002));
    forget();
  }
  /// Its ranks have exited with 0 before they took round 2.
  void finishes(std::uint64_t link) {
    Report report{Round(2), NodeState::kSucceeded, 5002, std::nullopt};
    report.finished = FinishedRound{Round(1), 2, WorldSize(2)};
    say(link, report);
  }
  void leaves_before(std::uint64_t link) {
    Report report = may_grow(2, 5002);
    report.left_before = true;
    say(link, report);
  }
};

}  // namespace

TEST_CASE("a node that joins ranks that may grow makes a round that grows, at no restart's cost") {
  Growing desk;
  CHECK_FALSE(desk.last<StartRound>(1)->grows);
  desk.both_may_grow();
  desk.third_joins();
  for (const std::uint64_t link : {1U, 2U, 3U}) {
    const auto round = desk.last<StartRound>(link);
    REQUIRE(round->stamp.number == Round(2));
    CHECK(round->grows);
    CHECK(round->restarts == RestartCount(0));
  }
}

TEST_CASE("a round does not grow if a node does not say that its ranks may, or not any more") {
  Growing desk;
  SECTION("never") {
    desk.say(1, may_grow(1, 5001));
  }
  SECTION("not any more") {
    desk.both_may_grow();
    desk.say(2, may_grow(1, 5000, false));
  }
  SECTION("a rank has failed") {
    desk.both_may_grow();
    desk.say(2, desk.failed(1, 3));
    CHECK_FALSE(desk.last<StartRound>(1)->grows);
    desk.both_run(2);
  }
  desk.third_joins();
  REQUIRE(desk.last<StartRound>(3)->group_size == 3);
  CHECK_FALSE(desk.last<StartRound>(1)->grows);
}

TEST_CASE("a round does not grow when a node is lost as another one joins") {
  Growing desk;
  desk.both_may_grow();
  desk.lose(2);
  REQUIRE(desk.last<StartRound>(1)->stamp.number == Round(2));
  CHECK_FALSE(desk.last<StartRound>(1)->grows);
  desk.third_joins();  // node "a" has not answered yet
  desk.say(1, may_grow(2, 5002));
  REQUIRE(desk.last<StartRound>(1)->stamp.number == Round(3));
  CHECK(desk.last<StartRound>(1)->grows);  // round 2 was of node "a" alone
}

TEST_CASE("what ranks may do counts for their round: a node that joins meanwhile has its own") {
  Growing desk;
  desk.both_may_grow();
  desk.third_joins();
  for (const std::uint64_t link : {1U, 2U, 3U}) desk.say(link, desk.report(2, NodeState::kRunning));
  desk.lose(3);
  REQUIRE(desk.last<StartRound>(1)->stamp.number == Round(3));
  CHECK_FALSE(desk.last<StartRound>(1)->grows);
}

TEST_CASE("a failure before all have taken a round that grows is followed by one that frees") {
  Growing desk;
  desk.both_may_grow();
  desk.third_joins();
  desk.say(1, desk.report(2, NodeState::kRunning, 5002));
  desk.say(2, desk.failed(2, 137));
  const auto round = desk.last<StartRound>(1);
  REQUIRE(round->stamp.number == Round(3));
  CHECK_FALSE(round->grows);
  CHECK(round->restarts == RestartCount(1));
}

TEST_CASE("a node that lost a rank as a round grows makes it be followed by one that frees") {
  Growing desk;
  desk.both_may_grow();
  desk.third_joins();
  REQUIRE(desk.last<StartRound>(1)->grows);
  desk.say(1, desk.report(2, NodeState::kStarting, 5002));
  Report gone = desk.report(2, NodeState::kStarting);
  gone.rank_gone = true;
  SECTION("before it knew of the round: no rank of this one has failed") {
    desk.say(2, gone);
    CHECK(desk.last<StartRound>(3)->restarts == RestartCount(0));
  }
  SECTION("said again, as over the next link: once") {
    desk.say(2, gone);
    desk.say(2, gone);
  }
  SECTION("and another rank failed: that costs a restart") {
    Report failed = desk.failed(2, 137);
    failed.rank_gone = true;
    desk.say(2, failed);
    CHECK(desk.last<StartRound>(3)->restarts == RestartCount(1));
  }
  for (const std::uint64_t link : {1U, 2U, 3U}) {
    const auto round = desk.last<StartRound>(link);
    CHECK(round->stamp.number == Round(3));
    CHECK_FALSE(round->grows);
  }
}

TEST_CASE(
    "all ranks finish as the round grows: a success, and the ranks of the newcomer are ended") {
  Growing desk;
  desk.grow();
  desk.finishes(1);
  CHECK_FALSE(desk.last<Done>(1));
  SECTION("after it was begun on all nodes") {
    desk.finishes(2);
  }
  SECTION("of one node before that heard of it") {
    desk.say(2, desk.report(1, NodeState::kSucceeded));
  }
  SECTION("as yet another node is lost") {
    desk.lose(3);
    desk.say(1, desk.report(3, NodeState::kStarting, 5003));
    desk.finishes(2);
    CHECK(desk.run_.phase() == Phase::kStopping);
    return;
  }
  CHECK(desk.last<Stop>(3)->round == Round(2));
  for (const std::uint64_t link : {1U, 2U, 3U}) desk.say(link, Stopped{Round(2)});
  for (const std::uint64_t link : {1U, 2U, 3U}) {
    REQUIRE(desk.last<Done>(link));
    CHECK(desk.last<Done>(link)->exit_code == 0);
    CHECK(desk.last<Done>(link)->text == "all 2 ranks on 2 nodes exited with code 0; 0 restarts");
  }
}

TEST_CASE("some ranks finish as the round grows and others take it: all are needed there") {
  Growing desk;
  desk.grow();
  SECTION("these finish first") {
    desk.finishes(1);
    desk.leaves_before(2);
  }
  SECTION("these take it first") {
    desk.leaves_before(2);
    desk.finishes(1);
  }
  SECTION("and finish that one, too") {
    desk.leaves_before(2);
    desk.say(2, desk.report(2, NodeState::kSucceeded));
    desk.finishes(1);
  }
  const auto round = desk.last<StartRound>(1);
  REQUIRE(round->stamp.number == Round(3));
  CHECK_FALSE(round->grows);
  CHECK(round->restarts == RestartCount(0));
}

TEST_CASE("a round is left to grow before the next node is admitted") {
  Desk desk(3);
  desk.say(1, desk.hello("a", 1, 3, Milliseconds(100)));
  desk.after(milliseconds(200));
  desk.say(1, may_grow(1, 5001));
  desk.say(2, desk.hello("b", 1, 3));
  REQUIRE(desk.last<StartRound>(2)->grows);
  desk.say(1, desk.report(2, NodeState::kRunning, 5002));
  desk.say(2, desk.report(2, NodeState::kRunning));
  desk.say(3, desk.hello("c", 1, 3));
  CHECK(desk.last<StartRound>(1)->stamp.number == Round(2));
  CHECK_THAT(desk.last<Waiting>(3)->text, Catch::Matchers::StartsWith("other nodes have just"));
  Report left = desk.report(2, NodeState::kRunning, 5002);
  left.left_before = true;
  desk.say(1, left);
  CHECK(desk.last<StartRound>(1)->stamp.number == Round(3));
}

TEST_CASE("ranks that finished a round under the coordinator before are believed, all of them") {
  Desk desk(3);
  const auto comes_back = [&](std::uint64_t link, const std::string& host, NodeState state) {
    Hello again = desk.hello(host, 1, 3);
    again.seen = Round(2);
    again.claim = Claim{{Round(2), "c0"}, static_cast<int>(link) - 1, 3, RestartCount(0), state};
    desk.say(link, again);
  };
  const auto finishes = [&](std::uint64_t link) {
    Report report = desk.report(2, NodeState::kSucceeded);
    report.finished = FinishedRound{Round(1), 2, WorldSize(2)};
    desk.say(link, report);
  };
  comes_back(1, "a", NodeState::kSucceeded);
  finishes(1);
  finishes(1);
  CHECK(desk.run_.phase() == Phase::kRebuilding);
  comes_back(2, "b", NodeState::kSucceeded);
  const bool complete = GENERATE(true, false);
  if (complete) comes_back(3, "c", NodeState::kRunning);
  finishes(2);
  if (complete) desk.say(3, Stopped{Round(2)});
  for (const std::uint64_t link : {1U, 2U}) desk.say(link, Stopped{Round(2)});
  REQUIRE(desk.last<Done>(1));
  CHECK(desk.last<Done>(1)->exit_code == 0);
}
