// Nodes that join a run and leave it again and again.
#include "rendezvous/round/join_pace.hpp"

#include "tests/round/desk.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/sentences.hpp"

using namespace ddprun;
using namespace ddprun::round;
using namespace ddprun::protocol;
using namespace ddprun::test;
using std::chrono::minutes;

namespace {

const Peer kVisitor{"10.0.0.9", "10.0.0.1"};

/// Two nodes train, and at most four may.
void train(Desk& desk) {
  desk.say(1, desk.hello("a", 2, 4, seconds(0)));
  desk.say(2, desk.hello("b", 2, 4, seconds(0)));
  desk.both_run();
}

/// The members of a round take it on.
void answer(Desk& desk) {
  const int round = desk.run_.status(desk.now_).round.number.value();
  desk.say(1, desk.report(round, NodeState::kRunning, static_cast<std::uint16_t>(5000 + round)));
  desk.say(2, desk.report(round, NodeState::kRunning));
}

/// A node joins under another name each time, and is gone at once.
void visit(Desk& desk, int number, const Peer& peer = kVisitor) {
  const auto link = static_cast<std::uint64_t>(100 + number);
  desk.say(link, desk.hello("visitor-" + std::to_string(number), 2, 4), peer);
  answer(desk);
  desk.lose(link);
  answer(desk);
}

std::uint64_t rounds(const Desk& desk) {
  return desk.run_.status(desk.now_).counters.rounds;
}

}  // namespace

TEST_CASE("the first visits of an address are free, then the pause after each one doubles") {
  JoinPace pace;
  const std::string address = "10.0.0.9";
  TimePoint now{seconds(100)};
  CHECK(pace.pace_of(address, now).until <= now);
  for (int visit = 0; visit < kOfAddress.free; ++visit) {
    now += milliseconds(25);
    CHECK(pace.left(address, now, now) == Duration(0));
    CHECK(pace.pace_of(address, now).until <= now);
  }
  for (Duration pause = kJoinPauseMin; pause < kOfAddress.pause_max; pause *= 2) {
    now += milliseconds(25);
    CHECK(pace.left(address, now, now) == pause);
    CHECK(pace.pace_of(address, now).until == now + pause);
  }
  for (int more = 0; more < 100; ++more) {
    now += milliseconds(25);
    CHECK(pace.left(address, now, now) == kOfAddress.pause_max);
  }
}

TEST_CASE("visits are forgotten with time, and a node that stays for long never waits") {
  JoinPace pace;
  TimePoint now{seconds(100)};
  for (int visit = 0; visit < 20; ++visit) {
    CHECK(pace.left("10.0.0.9", now, now) == Duration(0));
    now += kOfAddress.forgotten;
    CHECK(pace.pace_of("10.0.0.9", now).visits == 0);
  }
}

TEST_CASE("visits are forgotten also while others follow") {
  JoinPace pace;
  TimePoint now{seconds(100)};
  for (int visit = 0; visit < 20; ++visit) {
    pace.left("10.0.0.9", now, now);
    now += kOfAddress.forgotten / 2;
  }
  CHECK(pace.pace_of("10.0.0.9", now).visits <= 11);
  CHECK(pace.pace_of("10.0.0.9", now + 11 * kOfAddress.forgotten).visits == 0);
}

TEST_CASE("nodes of one address that were in together are one visit, however they go") {
  JoinPace pace;
  const TimePoint came{seconds(100)};
  for (int node = 0; node < kOfRun.free; ++node) {
    CHECK(pace.left("10.0.0.9", came, came + seconds(1 + node)) == Duration(0));
  }
  CHECK(pace.pace_of("10.0.0.9", came + seconds(20)).visits == 1);
}

TEST_CASE("a node that stayed for long is no visitor, however often its kind goes") {
  JoinPace pace;
  TimePoint now{seconds(100)};
  for (int node = 0; node < 100; ++node) {
    const TimePoint came = now;
    now += kLongVisit;
    CHECK(pace.left("10.0.0.9", came, now) == Duration(0));
  }
  CHECK(pace.pace_of("10.0.0.9", now).visits == 0);
}

TEST_CASE("other hosts are not concerned, but those of the same IPv6 network are") {
  JoinPace pace;
  TimePoint now{seconds(100)};
  for (int visit = 0; visit <= kOfAddress.free; ++visit) {
    now += milliseconds(1);
    pace.left("2001:db8::1", now, now);
  }
  CHECK(pace.pace_of("2001:db8::1", now).until > now);
  CHECK(pace.pace_of("2001:db8::77", now).until > now);
  CHECK(pace.pace_of("2001:db8::77", now).who == "2001:db8::/64");
  CHECK(pace.pace_of("2001:db8:0:1::1", now).until <= now);
  CHECK(pace.pace_of("10.0.0.9", now).until <= now);
}

TEST_CASE("addresses without number take no more memory each") {
  JoinPace pace;
  TimePoint now{seconds(100)};
  for (std::size_t host = 0; host < 3 * kVisitorsMax; ++host) {
    now += milliseconds(1);
    pace.left("host" + std::to_string(host), now, now);
  }
  now += kOfRun.pause_max;
  CHECK(pace.pace_of("host0", now).visits == 0);
  CHECK(pace.pace_of("host" + std::to_string(3 * kVisitorsMax - 1), now).visits == 1);
}

TEST_CASE("a node that comes and goes 40 times in a second restarts the others a few times") {
  Desk desk;
  train(desk);
  for (int number = 0; number < 40; ++number) {
    visit(desk, number);
    desk.beat_for(milliseconds(25), {1, 2});
  }
  CHECK(rounds(desk) <= 1 + 2 * (kOfAddress.free + 1));
  CHECK(desk.run_.status(desk.now_).counters.held_back >= 36);
  CHECK(desk.run_.status(desk.now_).restarts == RestartCount(0));
}

TEST_CASE("who has many addresses has no more than the run's allowance") {
  Desk desk;
  train(desk);
  for (int number = 0; number < 136; ++number) {
    visit(desk, number, {"10.0.1." + std::to_string(number), "10.0.0.1"});
    desk.beat_for(milliseconds(44), {1, 2});
  }
  CHECK(rounds(desk) <= 1 + 2 * (kOfRun.free + 3));  // and after 1 s and 2 s
  CHECK(desk.run_.status(desk.now_).restarts == RestartCount(0));
  desk.say(500, desk.hello("newcomer", 2, 4), {"10.0.2.1", "10.0.0.1"});
  REQUIRE(desk.last<Waiting>(500));
  CHECK_THAT(desk.last<Waiting>(500)->text,
             ContainsSubstring("nodes of several addresses have" + test::kHeldBackSinceIt));
  desk.beat_for(seconds(60), {1, 2, 500});
  CHECK(desk.last<StartRound>(500));
}

TEST_CASE("a node that has to wait is told why and until when, and joins then") {
  Desk desk;
  train(desk);
  for (int number = 0; number <= kOfAddress.free; ++number) {
    desk.now_ += milliseconds(1);
    visit(desk, number);
  }
  CHECK(std::count(desk.notes_.begin(), desk.notes_.end(),
                   "10.0.0.9 has joined and left 4 times; no round ends for it within 1 s") == 1);
  desk.say(50, desk.hello("visitor", 2, 4), kVisitor);
  CHECK_FALSE(desk.last<StartRound>(50).has_value());
  REQUIRE(desk.last<Waiting>(50).has_value());
  CHECK(desk.last<Waiting>(50)->text == "10.0.0.9 has" + test::kHeldBackSinceIt +
                                            " 4 times; this node joins in 1 s at the soonest, so "
                                            "that the others are not started again each time");
  SECTION("and joins then") {
    desk.beat_for(milliseconds(999), {1, 2, 50});
    CHECK_FALSE(desk.last<StartRound>(50).has_value());
    desk.beat_for(milliseconds(1), {1, 2, 50});
    CHECK(desk.last<StartRound>(50).has_value());
  }
  SECTION("a round that starts for another reason does not take it in") {
    desk.say(51, desk.hello("newcomer", 2, 4), {"10.0.0.10", "10.0.0.1"});
    CHECK(desk.last<StartRound>(51).has_value());
    CHECK_FALSE(desk.last<StartRound>(50).has_value());
  }
  SECTION("it is taken at once where the run needs it") {
    desk.lose(2);
    CHECK(desk.last<StartRound>(50).has_value());
  }
}

TEST_CASE("other nodes are taken at once, also while one of another address has to wait") {
  Desk desk;
  train(desk);
  for (int number = 0; number < 20; ++number) {
    desk.now_ += milliseconds(1);
    visit(desk, number);
  }
  const auto before = rounds(desk);
  desk.say(50, desk.hello("newcomer", 2, 4), {"10.0.0.10", "10.0.0.1"});
  CHECK(desk.last<StartRound>(50).has_value());
  CHECK(rounds(desk) == before + 1);
}

TEST_CASE("the nodes of the first round are no visitors") {
  Desk desk;
  train(desk);
  for (int time = 0; time < 2; ++time) {
    desk.lose({1, 2});
    desk.after(seconds(1));
    for (const std::uint64_t link : {1U, 2U}) {
      Hello back = desk.hello(link == 1 ? "a" : "b", 2, 4);
      desk.say(link, back);
    }
    desk.after(seconds(6));
    answer(desk);
  }
  CHECK(desk.run_.status(desk.now_).counters.held_back == 0);
}
