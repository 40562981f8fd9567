// Who is lost by silence, and who is not: stalls of the coordinator, agents that reconnect.
#include "tests/round/desk.hpp"
#include "tests/support/catch.hpp"

using namespace ddprun;
using namespace ddprun::round;
using namespace ddprun::protocol;

TEST_CASE("a silent agent is lost at the limit, not before") {
  Desk desk;
  desk.join_two(1);
  desk.beat_for(seconds(4), {1});
  desk.after(milliseconds(999));
  CHECK(desk.run_.status(desk.now_).nodes.size() == 2);
  desk.after(milliseconds(1));
  CHECK(desk.run_.status(desk.now_).nodes.size() == 1);
}

TEST_CASE("after a stall of the coordinator every agent has the silence limit to come back") {
  Desk desk;
  desk.say(1, desk.hello("a", 2, 2));
  desk.stall(seconds(60));
  desk.after(milliseconds(4999));
  CHECK(desk.run_.status(desk.now_).nodes.size() == 1);
  desk.after(milliseconds(1));
  CHECK(desk.run_.status(desk.now_).nodes.empty());
}

TEST_CASE("a stall of the coordinator that ends around the silence limit costs no node") {
  for (Duration stall = milliseconds(2100); stall < seconds(8); stall += milliseconds(100)) {
    Desk desk;
    desk.join_two();
    desk.beat_for(seconds(2), {1, 2});
    desk.after(milliseconds(900));
    desk.stall(stall);
    CHECK(desk.run_.status(desk.now_).nodes.size() == 2);
    CHECK(desk.closed_.empty());
  }
}

TEST_CASE("a link that broke during a stall of the coordinator is no loss of its node") {
  for (const bool during : {true, false}) {
    Desk desk;
    desk.join_two();
    desk.both_run();
    desk.now_ += seconds(20);
    if (!during) desk.after(Duration(0));
    desk.lose(2);
    CHECK(desk.run_.status(desk.now_).counters.losses == (during ? 0 : 1));
    if (!during) continue;
    desk.say(3, desk.hello_again());
    desk.beat_for(seconds(5), {1, 3});
    CHECK(desk.run_.status(desk.now_).counters.losses == 0);
    CHECK(desk.run_.status(desk.now_).phase == Phase::kRunning);
  }
}

TEST_CASE("after a stall of the coordinator successes count before a node that joined meanwhile") {
  for (const bool succeeded : {true, false}) {
    Desk desk;
    desk.say(1, desk.hello("a", 2, 3, seconds(0)));
    desk.say(2, desk.hello("b", 2, 3, seconds(0)));
    desk.both_run();
    desk.now_ += seconds(20);
    desk.say(3, desk.hello("c", 2, 3, seconds(0)));
    for (const std::uint64_t link : {1U, 2U}) {
      if (succeeded) desk.say(link, desk.report(1, NodeState::kSucceeded));
    }
    CHECK_FALSE(desk.last<StartRound>(3).has_value());
    desk.after(Duration(0));
    CHECK(desk.last<StartRound>(3).has_value() != succeeded);
    CHECK(desk.last<Done>(1).has_value() == succeeded);
  }
}

TEST_CASE("an agent that closes a silent link is not lost with it: it has the silence limit") {
  for (const bool comes_back : {true, false}) {
    Desk desk;
    desk.join_two(1);
    desk.say(2, Reconnecting{"no heartbeat for 5 s"});
    CHECK(desk.closed_ == std::vector<LinkId>{LinkId(2)});
    desk.lose(2);
    desk.beat_for(seconds(4), {1});
    desk.after(milliseconds(999));
    CHECK(desk.run_.status(desk.now_).nodes.size() == 2);
    if (comes_back) desk.say(3, desk.hello_again(1));
    desk.after(milliseconds(1));
    const Status status = desk.run_.status(desk.now_);
    CHECK(status.nodes.size() == (comes_back ? 2 : 1));
    CHECK(status.counters.losses == (comes_back ? 0 : 1));
  }
}

TEST_CASE("no round starts without an agent that is on its way back") {
  Desk desk;
  desk.join_two(1);
  desk.say(1, desk.report(1, NodeState::kStarting, 4001));
  desk.say(2, Reconnecting{"no heartbeat for 5 s"});
  desk.lose(1);
  desk.say(3, desk.hello("c", 1, 2));
  CHECK_FALSE(desk.last<StartRound>(3).has_value());
  desk.say(4, desk.hello_again(1));
  REQUIRE(desk.last<StartRound>(3).has_value());
  CHECK(desk.last<StartRound>(4)->stamp == desk.last<StartRound>(3)->stamp);
}

TEST_CASE("a deadline passes only with a Tick, when everything received before has been read") {
  Desk desk;
  desk.join_two(1);
  desk.say(1, desk.report(1, NodeState::kStarting, 4001));
  desk.beat_for(seconds(9), {1, 2});
  desk.now_ += milliseconds(1500);  // past the time to answer
  desk.say(1, Beat{});
  CHECK_FALSE(desk.last<Refused>(2).has_value());
  desk.say(2, desk.report(1, NodeState::kStarting));
  desk.after(Duration(0));
  CHECK_FALSE(desk.last<Refused>(2).has_value());
}

TEST_CASE("the agent in the coordinator's own process is not lost by silence") {
  for (const bool hosted : {true, false}) {
    Desk desk;
    Hello first = desk.hello("a", 1, 2);
    first.runs_coordinator = hosted;
    desk.say(1, first);
    desk.say(2, desk.hello("b", 1, 2));
    desk.beat_for(seconds(4), {2});
    desk.after(seconds(1));  // the process stood still for less than it would notice
    CHECK(desk.closed_.empty() == hosted);
  }
}

TEST_CASE("a node that reconnects has the whole time to answer the round that it missed") {
  Desk desk;
  desk.join_two(1);
  desk.say(1, desk.report(1, NodeState::kStarting, 4001));
  desk.beat_for(kAnswerMax - milliseconds(1), {1, 2});
  desk.say(2, Reconnecting{"no heartbeat for 5 s"});
  desk.say(3, desk.hello("b", 1, 2));
  CHECK(desk.last<StartRound>(3).has_value());
  desk.beat_for(kAnswerMax - milliseconds(1), {1, 3});
  CHECK_FALSE(desk.last<Refused>(3).has_value());
  desk.after(milliseconds(1));
  CHECK(desk.last<Refused>(3).has_value());
}
