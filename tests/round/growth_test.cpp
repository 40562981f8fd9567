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
