// What a node that was in no round of a run can do by claiming that it was: no more than a node
// that joins (docs/SECURITY-MODEL.md).
#include "tests/round/succession_scene.hpp"
#include "tests/support/catch.hpp"

using namespace ddprun;
using namespace ddprun::round;

namespace {

constexpr std::uint64_t kStranger = 9;

/// A node that cannot know who decided the rounds of the run claims to be in this one.
Hello stranger(Desk& desk, int round, int least = 2, NodeState state = NodeState::kRunning) {
  Hello hello = desk.hello("stranger", least, 2);
  hello.claim = Claim{{Round(round), "guessed"}, 0, 2, RestartCount(3), state};
  return hello;
}

/// Nodes "a" and "b" run round 1 of a run of two, which has three restarts.
Desk two_that_run(int max_restarts = 3) {
  Desk desk(max_restarts);
  desk.join_two();
  desk.both_run();
  return desk;
}

Leave leave_all(int round) {
  Leave leave;
  leave.round = Round(round);
  leave.exit_code = 9;
  leave.reason = "stranger";
  leave.all_nodes = leave.requested = true;
  return leave;
}

}  // namespace

TEST_CASE("a stranger's success is not one of the run") {
  for (const int round : {1, 2, 7}) {
    Desk desk = two_that_run();
    desk.say(kStranger, stranger(desk, round));
    desk.say(kStranger, desk.report(round, NodeState::kSucceeded));
    desk.say(kStranger, desk.report(std::max(1, round - 1), NodeState::kSucceeded));
    CHECK(desk.run_.phase() == Phase::kRunning);
    CHECK_FALSE(desk.last<Done>(1).has_value());
  }
}

TEST_CASE("a stranger cannot end the run for all nodes") {
  for (const int round : {1, 2, 7}) {
    Desk desk = two_that_run();
    desk.say(kStranger, stranger(desk, round));
    desk.say(kStranger, leave_all(round));
    CHECK(desk.run_.phase() == Phase::kRunning);
    CHECK_FALSE(desk.last<Stop>(1).has_value());
  }
}

TEST_CASE("a stranger takes no rank of a node of the round before") {
  Desk desk = two_that_run();
  desk.say(kStranger, stranger(desk, 1));
  desk.say(2, desk.failed(1, 3));
  REQUIRE(desk.last<StartRound>(1).has_value());
  CHECK(desk.last<StartRound>(1)->group_rank == 0);
  CHECK(desk.last<StartRound>(2)->group_rank == 1);
  CHECK_FALSE(desk.last<StartRound>(kStranger).has_value());
}

TEST_CASE("a stranger uses no restart") {
  Desk desk = two_that_run();
  desk.say(kStranger, stranger(desk, 1));
  CHECK(desk.run_.status(desk.now_).restarts == RestartCount(0));
  desk.say(2, desk.failed(1, 3));
  CHECK(desk.last<StartRound>(1)->restarts == RestartCount(1));
}

TEST_CASE(
    "a stranger changes nothing in the report of a failure, and the end does not wait for it") {
  Desk desk = two_that_run(0);
  desk.say(kStranger, stranger(desk, 1, 2, NodeState::kRunning));
  desk.say(kStranger, desk.failed(1, 77));
  desk.say(2, desk.failed(1, 3));
  Stopped forged{Round(1), seconds(100), 0, 5};
  forged.failure.emplace().status = ExitStatus::exited(99);
  desk.say(kStranger, forged);
  Stopped honest{Round(1)};
  desk.say(2, honest);
  desk.say(1, honest);
  REQUIRE(desk.last<Done>(1).has_value());
  const Done verdict = *desk.last<Done>(1);
  CHECK(verdict.exit_code == 3);
  CHECK(verdict.failure->first.status == ExitStatus::exited(3));
  CHECK(verdict.failure->also.empty());
  CHECK(verdict.failure->stopped == 0);
  CHECK(verdict.failure->stop_took == milliseconds(0));
}

TEST_CASE("strangers that say that they reconnect do not stop the next round") {
  Desk desk = two_that_run();
  for (int time = 0; time < 3; ++time) {
    Hello hello = stranger(desk, 1);
    hello.agent = AgentId("stranger-" + std::to_string(time));
    const auto link = static_cast<std::uint64_t>(20 + time);
    desk.say(link, hello);
    desk.say(link, Reconnecting{});
  }
  desk.say(2, desk.failed(1, 3));
  CHECK(desk.last<StartRound>(1)->stamp.number == Round(2));
}

TEST_CASE("strangers that say that they reconnect do not keep a run from its first round") {
  Desk desk;
  desk.say(kStranger, desk.hello("stranger", 2, 2));
  desk.say(kStranger, Reconnecting{});
  desk.join_two();
  CHECK(desk.last<StartRound>(1).has_value());
}

TEST_CASE("strangers that say that they reconnect do not keep a node from joining") {
  Desk desk;
  desk.say(1, desk.hello("a", 1, 3, seconds(0)));
  desk.after(seconds(0));
  desk.say(1, desk.report(1, NodeState::kRunning));
  desk.say(kStranger, stranger(desk, 1, 1));
  desk.say(kStranger, Reconnecting{});
  desk.say(2, desk.hello("b", 1, 3));
  desk.after(seconds(1));
  CHECK(desk.last<StartRound>(2).has_value());
}

TEST_CASE("a stranger's claim does not let a run that waits for a node wait for others") {
  Desk desk = two_that_run();
  desk.lose(2);
  REQUIRE(desk.run_.phase() == Phase::kForming);
  desk.say(kStranger, stranger(desk, 7));
  CHECK(desk.last<StartRound>(1)->stamp.number ==
        Round(8));  // it joins, above what it has heard of
}

TEST_CASE("workers of a round of no run that is here are told to stop") {
  Desk desk = two_that_run();
  desk.say(kStranger, stranger(desk, 7));
  REQUIRE(desk.last<Stop>(kStranger).has_value());
  CHECK(desk.last<Stop>(kStranger)->round == Round(7));
  CHECK(desk.last<Waiting>(kStranger).has_value());
  desk.say(kStranger, Stopped{Round(7)});
  CHECK(desk.run_.status(desk.now_).counters.stale == 0);
}

TEST_CASE("after a restart of the coordinator one claim does not take the run from its members") {
  for (const bool is_first : {true, false}) {
    Desk desk;
    const Hello liar = stranger(desk, 1000);
    if (is_first) desk.say(kStranger, liar);
    for (const int rank : {0, 1}) {
      Hello hello = desk.hello(rank == 0 ? "a" : "b", 2, 2);
      hello.claim = Claim{{Round(5), "c0"}, rank, 2, RestartCount(0), NodeState::kRunning};
      desk.say(static_cast<std::uint64_t>(rank + 1), hello);
      if (!is_first && rank == 0) desk.say(kStranger, liar);
    }
    CHECK(desk.run_.phase() == Phase::kRunning);
    CHECK(desk.run_.status(desk.now_).round.number == Round(5));
    CHECK(desk.run_.status(desk.now_).restarts == RestartCount(0));
    CHECK_FALSE(desk.last<Stop>(1).has_value());
    CHECK(desk.last<Stop>(kStranger)->round == Round(1000));
  }
}

TEST_CASE("a claim of a node that has gone before the first round shows nothing") {
  Desk desk(3);
  desk.say(kStranger, stranger(desk, 5));
  desk.lose(kStranger);
  desk.join_two();
  REQUIRE(desk.last<StartRound>(1).has_value());
  CHECK(desk.last<StartRound>(1)->restarts == RestartCount(0));
  const int round = desk.last<StartRound>(1)->stamp.number.value();
  desk.both_run(round);
  desk.say(kStranger, stranger(desk, round + 1));
  desk.say(kStranger, desk.report(round + 1, NodeState::kSucceeded));
  desk.say(kStranger, desk.report(round, NodeState::kSucceeded));
  desk.say(kStranger, leave_all(round + 1));
  CHECK(desk.run_.phase() == Phase::kRunning);
}

TEST_CASE("a stranger that leaves does not end a run that waits for silent nodes") {
  Desk desk(3);
  for (const std::uint64_t link : {1U, 2U, 3U}) {
    desk.say(link, desk.hello(std::string(1, static_cast<char>('a' + link)), 3, 3));
  }
  for (const int round : {1, 2}) {
    for (const std::uint64_t link : {1U, 2U, 3U}) {
      desk.say(link, desk.report(round, NodeState::kStarting));
    }
    if (round == 1) desk.say(1, desk.failed(1, 3));
  }
  desk.say(kStranger, desk.hello("stranger", 3, 3));
  desk.beat_for(seconds(10), {1, kStranger});
  REQUIRE(desk.run_.status(desk.now_).round.number == Round(2));  // two are silent, and awaited
  desk.say(kStranger, Leave{1, "bye"});
  CHECK(desk.run_.phase() == Phase::kRunning);
  CHECK_FALSE(desk.last<Done>(1).has_value());
}

TEST_CASE("while a round is rebuilt one claim cannot end the run for all nodes") {
  Desk desk;
  desk.say(kStranger, stranger(desk, 1000));
  desk.say(kStranger, leave_all(1000));
  CHECK(desk.run_.phase() != Phase::kStopping);
  CHECK_FALSE(desk.run_.over());
}

TEST_CASE("a member that comes when its round was given up keeps its place") {
  Desk desk;
  Hello first = desk.hello("a", 1, 2);
  first.claim = Claim{{Round(5), "c0"}, 1, 2, RestartCount(0), NodeState::kRunning};
  desk.say(1, first);
  desk.beat_for(seconds(20), {1});
  REQUIRE(desk.last<StartRound>(1)->stamp.number == Round(6));
  desk.say(1, desk.report(6, NodeState::kRunning));
  Hello second = desk.hello("b", 1, 2);
  second.claim = Claim{{Round(5), "c0"}, 0, 2, RestartCount(2), NodeState::kRunning};
  desk.say(2, second);
  CHECK(desk.run_.status(desk.now_).restarts == RestartCount(0));  // the run has none
  CHECK(desk.last<StartRound>(2)->stamp.number == Round(7));
}

TEST_CASE("a candidate believes those that were told where its run began") {
  SuccessionOptions options = candidate("c0");
  options.candidate->origin = "began here";
  Desk desk(options);
  Hello liar = claiming(desk, "stranger", 0, 1, {0, true, true, true, false, "guessed"});
  liar.claim->restarts = RestartCount(3);
  desk.say(kStranger, liar);
  desk.after(milliseconds(10));
  CHECK(desk.run_.phase() == Phase::kRebuilding);
  CHECK_FALSE(desk.last<StartRound>(kStranger).has_value());
  for (const int rank : {1, 2}) {
    desk.say(
        static_cast<std::uint64_t>(rank),
        claiming(desk, rank == 1 ? "b" : "c", rank, 3, {0, true, true, true, false, "began here"}));
  }
  desk.beat_for(seconds(1), {1, 2});
  CHECK(desk.last<StartRound>(1)->stamp.number == Round(4));
  CHECK(desk.last<StartRound>(1)->group_rank == 0);
}

TEST_CASE("a coordinator that knows the members of its run weighs no claim of a stranger") {
  for (const bool is_first : {true, false}) {
    RunOptions options{RunId("7f3a"), author_of_lineage("kept", "c1")};
    options.knows_members = true;
    Desk desk(std::move(options));
    const Hello liar = stranger(desk, 1000);
    if (is_first) desk.say(kStranger, liar);
    Hello hello = desk.hello("a", 2, 2);
    const std::string author = author_of_lineage("kept", "c0");
    hello.claim = Claim{{Round(5), author}, 0, 2, RestartCount(1), NodeState::kRunning};
    desk.say(1, hello);
    if (!is_first) desk.say(kStranger, liar);
    desk.beat_for(seconds(20), {1, kStranger});  // "b" is back later than the silence limit
    CHECK(desk.run_.status(desk.now_).restarts == RestartCount(1));
    const auto next = desk.last<StartRound>(1);
    REQUIRE(next.has_value());
    CHECK(next->group_rank == 0);
    CHECK(next->restarts == RestartCount(1));
  }
}
