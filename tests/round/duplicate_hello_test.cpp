// A hello with the id of an agent whose link is open: its own after a break that only it knows of,
// or a stranger's.
#include "tests/round/desk.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/sentences.hpp"

using namespace ddprun;
using namespace ddprun::round;
using namespace ddprun::protocol;
using namespace ddprun::test;

namespace {

const Peer kElsewhere{"10.0.0.66", "10.0.0.1"};

/// Nodes "a" and "b" train; then a hello with the id of "b" comes on link 3.
void claim_id(Desk& desk) {
  desk.join_two();
  desk.both_run();
  desk.forget();
  desk.say(3, desk.hello_again(), kElsewhere);
}

std::string address_of_b(const Desk& desk) {
  return desk.run_.status(desk.now_).nodes.back().address;
}

}  // namespace

TEST_CASE("a hello with the id of an agent that answers is refused, and its link stays") {
  Desk desk;
  claim_id(desk);
  REQUIRE(desk.last<Beat>(2).has_value());
  REQUIRE(desk.last<Beat>(2)->echo.has_value());
  CHECK(desk.closed_.empty());
  CHECK_FALSE(desk.last<Refused>(3).has_value());
  desk.say(2, *desk.last<Beat>(2));
  REQUIRE(desk.last<Refused>(3).has_value());
  CHECK(desk.closed_ == std::vector<LinkId>{LinkId(3)});
  CHECK(address_of_b(desk) == "10.0.0.2");
  CHECK(desk.run_.status(desk.now_).counters.refusals == 1);
  CHECK(desk.run_.status(desk.now_).counters.rounds == 1);
  desk.beat_for(seconds(20), {1, 2});
  CHECK(address_of_b(desk) == "10.0.0.2");
}

TEST_CASE("the success of a stranger with an agent's id does not end the run") {
  Desk desk;
  claim_id(desk);
  desk.say(3, desk.report(1, NodeState::kSucceeded), kElsewhere);
  desk.say(1, desk.report(1, NodeState::kSucceeded));
  CHECK(desk.run_.status(desk.now_).phase == Phase::kRunning);
  desk.say(2, *desk.last<Beat>(2));
  CHECK(desk.run_.status(desk.now_).phase == Phase::kRunning);
  desk.say(2, desk.report(1, NodeState::kSucceeded));
  CHECK(desk.last<Done>(2)->exit_code == 0);
}

TEST_CASE("an agent whose link broke without a word is back after a second, with what it said") {
  Desk desk;
  claim_id(desk);
  desk.say(3, desk.report(1, NodeState::kSucceeded), kElsewhere);
  desk.beat_for(kDuplicateMax - milliseconds(1), {1});
  CHECK(address_of_b(desk) == "10.0.0.2");
  desk.after(milliseconds(1));
  CHECK(address_of_b(desk) == "10.0.0.66");
  CHECK(desk.closed_ == std::vector<LinkId>{LinkId(2)});
  desk.say(1, desk.report(1, NodeState::kSucceeded));
  CHECK(desk.last<Done>(3)->exit_code == 0);
  CHECK(desk.run_.status(desk.now_).counters.losses == 0);
}

TEST_CASE(
    "an agent is back at once when the end of its old link is seen, or it said that it left") {
  for (const bool said : {true, false}) {
    Desk desk;
    claim_id(desk);
    if (said) {
      desk.say(2, Reconnecting{"no heartbeat for 5 s"});
    } else {
      desk.lose(2);
    }
    CHECK(address_of_b(desk) == "10.0.0.66");
    CHECK(desk.run_.status(desk.now_).counters.losses == 0);
    CHECK(desk.run_.status(desk.now_).counters.rounds == 1);
  }
}

TEST_CASE("an answer to an earlier question is none to this one") {
  Desk desk;
  claim_id(desk);
  const Beat first = *desk.last<Beat>(2);
  desk.say(2, first);
  desk.forget();
  desk.say(4, desk.hello_again(), kElsewhere);
  REQUIRE(desk.last<Beat>(2).has_value());
  CHECK(desk.last<Beat>(2)->echo != first.echo);
  desk.say(2, first);
  CHECK_FALSE(desk.last<Refused>(4).has_value());
}

TEST_CASE("a flood of hellos with an agent's id asks it once, and costs the run no round") {
  Desk desk;
  claim_id(desk);
  const Beat question = *desk.last<Beat>(2);
  desk.forget();
  for (std::uint64_t link = 10; link < 1000; ++link) desk.say(link, desk.hello_again(), kElsewhere);
  CHECK_FALSE(desk.last<Beat>(2).has_value());
  desk.say(2, question);
  CHECK(desk.last<Refused>(999).has_value());
  CHECK(desk.run_.status(desk.now_).counters.rounds == 1);
  CHECK(desk.run_.status(desk.now_).nodes.size() == 2);
}

TEST_CASE("what waits behind a doubtful hello is bounded") {
  Desk desk;
  claim_id(desk);
  for (std::size_t count = 0; count <= kHeldMessagesMax; ++count) {
    desk.say(3, Quiet{Round(1), seconds(1), {}}, kElsewhere);
  }
  CHECK(desk.closed_ == std::vector<LinkId>{LinkId(3)});
  desk.beat_for(seconds(2), {1, 2});
  CHECK(address_of_b(desk) == "10.0.0.2");
}

TEST_CASE("an agent whose hello is in doubt may send heartbeats as often as it does") {
  Desk desk;
  claim_id(desk);
  for (std::size_t count = 0; count <= 2 * kHeldMessagesMax; ++count)
    desk.say(3, Beat{}, kElsewhere);
  CHECK(desk.closed_.empty());
  desk.beat_for(kDuplicateMax, {1});
  CHECK(address_of_b(desk) == "10.0.0.66");
}

TEST_CASE("one link has one agent, also while its hello is in doubt") {
  Desk desk;
  claim_id(desk);
  desk.say(3, desk.hello("c", 2, 2), kElsewhere);
  CHECK(desk.last<Refused>(3)->code == RefusalCode::kMalformed);
  desk.beat_for(seconds(2), {1, 2});
  CHECK(address_of_b(desk) == "10.0.0.2");
}

TEST_CASE("an agent that is back as its old link falls silent is not lost") {
  Desk desk;
  desk.join_two();
  desk.both_run();
  desk.beat_for(milliseconds(4900), {1});
  desk.say(3, desk.hello_again());
  desk.beat_for(seconds(2), {1, 3});
  CHECK(desk.run_.status(desk.now_).counters.losses == 0);
  CHECK(desk.run_.status(desk.now_).nodes.size() == 2);
}

TEST_CASE("a stranger that says it is older does not keep the agent out") {
  Desk desk;
  desk.join_two();
  desk.both_run();
  desk.say(2, Reconnecting{"no heartbeat for 5 s"});
  Hello stranger = desk.hello_again();
  stranger.age = std::chrono::hours(1);
  desk.say(3, stranger, kElsewhere);
  CHECK(address_of_b(desk) == "10.0.0.66");
  desk.beat_for(milliseconds(100), {1});
  Hello back = desk.hello_again();
  back.age = milliseconds(100);
  desk.say(4, back);
  desk.beat_for(kDuplicateMax, {1});
  CHECK(address_of_b(desk) == "10.0.0.2");
  CHECK(desk.run_.status(desk.now_).counters.losses == 0);
}

TEST_CASE("an agent that is back as the run ends gets its verdict") {
  Desk desk;
  claim_id(desk);
  desk.say(1, desk.failed(1, 5));
  desk.say(1, Stopped{Round(1), milliseconds(5), 0, 0});
  desk.say(2, Stopped{Round(1), milliseconds(5), 0, 0});
  desk.beat_for(seconds(1), {1});
  REQUIRE(desk.last<Done>(3).has_value());
  CHECK(desk.last<Done>(3)->exit_code == 5);
}
