// What an agent says of itself, against a run that must not believe all of it.
#include <malloc.h>

#include "rendezvous/protocol/limits.hpp"
#include "tests/round/desk.hpp"
#include "tests/support/catch.hpp"

using namespace ddprun;
using namespace ddprun::round;
using namespace ddprun::protocol;

namespace {

/// Node `host` of at most three is back from round 5 of another coordinator.
Hello back(Desk& desk, const std::string& host, int group_rank, int group_size, NodeState state) {
  Hello hello = desk.hello(host, 1, 3);
  hello.claim = Claim{{Round(5), "c0"}, group_rank, group_size, RestartCount(0), state};
  return hello;
}

/// Bytes that this process has allocated; 0 with an allocator of a sanitizer.
std::size_t allocated() {
  const struct mallinfo2 now = ::mallinfo2();
  return now.uordblks + now.hblkhd;
}

/// By how much `work` lets the allocated memory grow.
template <class Work>
std::size_t growth(Work work) {
  const std::size_t before = allocated();
  work();
  const std::size_t after = allocated();
  return after > before ? after - before : 0;
}

}  // namespace

TEST_CASE("the memory of a claim does not depend on the size of the round that it claims") {
  Desk desk;
  Hello claims = back(desk, "a", 0, kAgentsPerRunMax, NodeState::kRunning);
  CHECK(growth([&] { desk.say(1, claims); }) < 16 * 1024);
  CHECK(desk.run_.status(desk.now_).phase == Phase::kRebuilding);
}

TEST_CASE("an agent that says hello again and again with a claim takes no more memory each time") {
  Desk desk;
  const Hello again = back(desk, "a", 0, 3, NodeState::kRunning);
  desk.say(1, again);
  desk.forget();
  const auto grown = growth([&] {
    for (int count = 0; count < 5000; ++count) {
      desk.say(1, again);
      desk.forget();
    }
  });
  CHECK(grown < 32 * 1024);
  desk.beat_for(seconds(5), {1});
  CHECK(desk.last<StartRound>(1).has_value());
}

TEST_CASE("a place outside the claimed round is not a rank, also when a second claim is inside") {
  Desk desk;
  desk.say(1, back(desk, "a", 65535, 1, NodeState::kRunning));
  desk.say(1, back(desk, "a", 0, 1, NodeState::kRunning));
  CHECK(desk.run_.status(desk.now_).phase == Phase::kRebuilding);
}

TEST_CASE("an agent cannot lift the round number of a run that has rounds beyond what can be") {
  Desk desk;
  desk.join_two(1);
  for (const int seen : {1 << 29, kRoundJumpMax + 2}) {
    Hello liar = desk.hello("liar", 1, 2);
    liar.seen = Round(seen);
    desk.say(3, liar);
    REQUIRE(desk.last<Refused>(3).has_value());
    CHECK(desk.last<Refused>(3)->sentence == "round " + std::to_string(seen) +
                                                 " claimed by liar cannot be: the run has "
                                                 "reached round 1");
    desk.forget();
  }
  CHECK(desk.run_.status(desk.now_).round.number == Round(1));
}

TEST_CASE("all that agents lift the round number by is bounded, not each time") {
  Desk desk;
  desk.say(1, desk.hello("a", 1, 9, seconds(0)));
  int lifted = 0;
  for (int time = 0; time < 5; ++time) {
    Hello liar = desk.hello("liar", 1, 9);
    liar.seen = Round((time + 1) * (kRoundJumpMax / 2));
    const auto link = static_cast<std::uint64_t>(10 + time);
    desk.say(link, liar);
    lifted += desk.last<Refused>(link).has_value() ? 0 : 1;
    desk.lose(link);
  }
  CHECK(lifted == 2);
}

TEST_CASE("after a restart of the coordinator agents are believed, however far their rounds are") {
  for (const int round : {5, (1 << 29) + 1, (1 << 30) - kRoundJumpMax}) {
    Desk desk;
    int group_rank = 0;
    for (const char* host : {"a", "b"}) {
      Hello hello = back(desk, host, group_rank, 2, NodeState::kRunning);
      hello.claim->stamp.number = hello.seen = Round(round);
      desk.say(static_cast<std::uint64_t>(++group_rank), hello);
    }
    CHECK(desk.run_.status(desk.now_).phase == Phase::kRunning);
    CHECK(desk.run_.status(desk.now_).round.number == Round(round));
  }
}

TEST_CASE("after a restart of the coordinator one that is far beyond most agents is not believed") {
  Desk desk;
  desk.say(1, back(desk, "a", 0, 3, NodeState::kRunning));
  desk.say(2, desk.hello("new", 1, 3));
  desk.say(3, back(desk, "b", 1, 3, NodeState::kRunning));
  Hello liar = back(desk, "liar", 0, 1, NodeState::kRunning);
  liar.claim->stamp.number = Round(1 << 29);
  desk.say(4, liar);
  CHECK(desk.run_.status(desk.now_).phase == Phase::kRebuilding);
  desk.say(5, back(desk, "c", 2, 3, NodeState::kRunning));
  CHECK(desk.run_.status(desk.now_).phase == Phase::kRunning);
  CHECK(desk.run_.status(desk.now_).round.number < Round(100));
}

TEST_CASE("a stranger's number is not that of the first round") {
  for (const bool stays : {true, false}) {
    for (const int seen : {1 << 30, (1 << 30) - kRoundJumpMax, kRoundJumpMax + 1}) {
      Desk desk;
      Hello liar = desk.hello("liar", 2, 2);
      liar.seen = Round(seen);
      desk.say(3, liar);
      if (!stays) desk.lose(3);
      desk.join_two();
      desk.beat_for(seconds(20), {1, 2, 3});
      REQUIRE(desk.last<StartRound>(1).has_value());
      CHECK(desk.last<StartRound>(1)->stamp.number <= Round(2));
    }
  }
}

TEST_CASE("an agent that has left before the first round leaves no terms behind") {
  for (const bool claims : {true, false}) {
    for (const char* says : {"nothing", "seen", "claim"}) {
      Desk desk;
      Hello stranger = desk.hello("stranger", 2, 9);
      stranger.terms.keep_alive_interval = std::chrono::hours(24);
      if (says[0] == 's') stranger.seen = Round(5);
      if (says[0] == 'c') stranger.claim = Claim{{Round(5), "guessed"}, 0, 2, RestartCount(0)};
      desk.say(1, stranger);
      CHECK(desk.last<Waiting>(1).has_value());
      desk.lose(1);
      CHECK(desk.run_.is_unused());
      desk.say(2, claims ? back(desk, "a", 0, 1, NodeState::kRunning) : desk.hello("a", 1, 3));
      CHECK_FALSE(desk.last<Refused>(2).has_value());
      CHECK(desk.run_.status(desk.now_).terms.nodes_max == 3);
    }
  }
}

TEST_CASE("who has other terms is told whose they are, and where from") {
  Desk desk;
  desk.say(1, desk.hello("a", 2, 2), {"10.0.0.66", "10.0.0.1"});
  desk.say(2, desk.hello("b", 2, 3));
  REQUIRE(desk.last<Refused>(2).has_value());
  CHECK(desk.last<Refused>(2)->sentence.starts_with("run 7f3a (first node a at 10.0.0.66) has "));
}

TEST_CASE("a run without agents is kept for an hour at most, whatever its join_timeout") {
  Desk desk;
  Hello hello = desk.hello("a", 1, 1);
  hello.terms.join_timeout = std::chrono::hours(24 * 365);
  desk.say(1, hello);
  desk.say(1, desk.report(1, NodeState::kRunning));
  desk.lose(1);
  desk.after(kAbandonedMax - seconds(1));
  CHECK_FALSE(desk.finish_.has_value());
  desk.after(seconds(1));
  CHECK(desk.finish_.has_value());
}

TEST_CASE("an agent has one place in a round that is rebuilt, whatever it claims") {
  Desk desk;
  desk.say(1, back(desk, "a", 1, 3, NodeState::kSucceeded));
  desk.say(1, back(desk, "a", 0, 3, NodeState::kSucceeded));
  desk.say(2, back(desk, "b", 2, 3, NodeState::kRunning));
  CHECK(desk.run_.status(desk.now_).phase == Phase::kRebuilding);
  desk.say(3, back(desk, "c", 0, 3, NodeState::kRunning));
  CHECK(desk.run_.status(desk.now_).phase == Phase::kRunning);
}

TEST_CASE("an agent that claims a newer round loses its place in the older one") {
  Desk desk;
  desk.say(1, back(desk, "a", 0, 2, NodeState::kRunning));
  Hello other = back(desk, "a", 60000, 65536, NodeState::kRunning);
  other.claim->stamp.author = "c9";
  desk.say(1, other);
  desk.say(2, back(desk, "b", 1, 2, NodeState::kRunning));
  CHECK(desk.run_.status(desk.now_).phase == Phase::kRebuilding);
}

TEST_CASE("a node succeeds once, however often it reports that it did") {
  Desk desk;
  desk.join_two();
  desk.both_run();
  for (const NodeState state :
       {NodeState::kSucceeded, NodeState::kRunning, NodeState::kSucceeded}) {
    desk.say(2, desk.report(1, state));
  }
  CHECK(desk.run_.status(desk.now_).phase == Phase::kRunning);
  CHECK_FALSE(desk.last<Stop>(1).has_value());
}
