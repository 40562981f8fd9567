// What a coordinator leaves to the one after it, when no agent may be left that knows.
#include "tests/round/desk.hpp"
#include "tests/support/catch.hpp"

using namespace ddprun;
using namespace ddprun::round;
using namespace ddprun::protocol;

TEST_CASE("the record has the round, the restarts and the verdict") {
  Desk desk(1);
  CHECK(desk.run_.record() == RunRecord{});
  desk.join_two();
  CHECK(desk.run_.record() == RunRecord{1, 0});
  desk.both_run();
  desk.say(2, desk.failed(1, 3));
  CHECK(desk.run_.record() == RunRecord{2, 1});
  desk.both_run(2);
  desk.say(2, desk.failed(2, 3));
  CHECK(!desk.run_.record().over);
  desk.say(1, Stopped{Round(2)});
  desk.say(2, Stopped{Round(2)});
  const auto over = desk.run_.record().over;
  REQUIRE(over);
  CHECK(over->exit_code == 3);
  CHECK(over->nodes == 2);
}

TEST_CASE("a run that all its nodes have lost at once continues its rounds and its budget") {
  Desk desk(3, RunRecord{7, 2});
  desk.join_two();
  const auto round = desk.last<StartRound>(1);
  REQUIRE(round);
  CHECK(round->stamp.number == Round(8));
  CHECK(round->restarts == RestartCount(2));
  desk.both_run(8);
  desk.say(2, desk.failed(8, 3));
  CHECK(desk.last<StartRound>(1)->restarts == RestartCount(3));
}

TEST_CASE("a budget that has become smaller is used up") {
  Desk desk(1, RunRecord{7, 2});
  desk.join_two();
  CHECK(desk.last<StartRound>(1)->restarts == RestartCount(1));
}

TEST_CASE("nodes that train are found again by what they claim, and not by the record") {
  Desk desk(3, RunRecord{1, 0});
  Hello first = desk.hello("a", 2, 2);
  first.claim = Claim{{Round(1), "c0"}, 0, 2, RestartCount(0), NodeState::kRunning};
  Hello second = desk.hello("b", 2, 2);
  second.claim = Claim{{Round(1), "c0"}, 1, 2, RestartCount(0), NodeState::kRunning};
  desk.say(1, first);
  CHECK(desk.run_.phase() == Phase::kRebuilding);
  desk.say(2, second);
  CHECK(desk.run_.phase() == Phase::kRunning);
  CHECK(!desk.last<StartRound>(1));
}

TEST_CASE("a round that no agent has heard of is not numbered again") {
  Desk desk(3, RunRecord{5, 0});
  Hello only = desk.hello("a", 1, 2);
  only.claim = Claim{{Round(4), "c0"}, 0, 2, RestartCount(0), NodeState::kRunning};
  desk.say(1, only);
  desk.beat_for(seconds(6), {1});
  REQUIRE(desk.last<StartRound>(1));
  CHECK(desk.last<StartRound>(1)->stamp.number == Round(6));
}

TEST_CASE("a node that missed the verdict gets it, and a new one starts a new run") {
  const RunRecord::Verdict verdict{3, "rank 1 failed", 2};
  Desk desk(3, RunRecord{4, 3, verdict});
  Hello late = desk.hello("a", 2, 2);
  late.claim = Claim{{Round(4), "c0"}, 0, 2, RestartCount(3), NodeState::kStopped};
  desk.say(1, late);
  REQUIRE(desk.last<Done>(1));
  CHECK(desk.last<Done>(1)->exit_code == 3);
  CHECK(desk.last<Done>(1)->text == "rank 1 failed");
  desk.say(2, desk.hello("b", 2, 2));
  desk.say(3, desk.hello("c", 2, 2));
  const auto round = desk.last<StartRound>(2);
  REQUIRE(round);
  CHECK(round->stamp.number == Round(5));
  CHECK(round->restarts == RestartCount(0));
}

TEST_CASE("a node that comes after a success alone is late for it") {
  const RunRecord::Verdict verdict{0, "all 4 ranks exited with code 0", 2};
  Desk desk(0, RunRecord{1, 0, verdict});
  desk.say(1, desk.hello("a", 1, 2, milliseconds(2000)));
  desk.beat_for(seconds(3), {1});
  REQUIRE(desk.last<Done>(1));
  CHECK(desk.last<Done>(1)->exit_code == 0);
  CHECK(!desk.last<StartRound>(1));
}

TEST_CASE("the node with a coordinator that others follow leaves like any other node") {
  Desk desk(0, RunRecord{});
  Hello first = desk.hello("a", 1, 2);
  first.runs_coordinator = true;
  desk.say(1, first);
  desk.say(2, desk.hello("b", 1, 2));
  desk.both_run();
  desk.say(1, Leave{143, "SIGTERM received", Round(1), true});
  CHECK(!desk.last<Stop>(2));
  REQUIRE(desk.last<StartRound>(2));
  CHECK(desk.last<StartRound>(2)->stamp.number == Round(2));
}
