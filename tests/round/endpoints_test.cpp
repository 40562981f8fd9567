// A run with several endpoints, at each of which a coordinator may serve: docs/FAILOVER.md.
#include "tests/round/desk.hpp"
#include "tests/support/catch.hpp"

using namespace ddprun;
using namespace ddprun::round;
using namespace ddprun::protocol;

namespace {

Hello hello_of(Desk& desk, const std::string& host, int least, int most) {
  Hello hello = desk.hello(host, least, most);
  hello.terms.endpoints = "a:29400,b:29400";
  return hello;
}

/// Of one of `size` nodes in round 3 of the coordinator at another endpoint.
Hello claiming(Desk& desk, const std::string& host, int group_rank, int size, bool settled = true) {
  Hello hello = hello_of(desk, host, 1, 4);
  hello.claim =
      Claim{{Round(3), "c0"}, group_rank,          size,
            RestartCount(0),  NodeState::kRunning, Succession{settled ? 0 : 2, true, false, false},
            settled};
  return hello;
}

}  // namespace

TEST_CASE("the first round needs more than half of MAX, and says so") {
  Desk desk;
  desk.say(1, hello_of(desk, "a", 1, 4));
  CHECK(desk.last<Waiting>(1)->text == "1 node joined, waiting for 2 more");
  desk.beat_for(seconds(31), {1});
  CHECK(
      desk.last<Waiting>(1)->text ==
      "waiting for nodes: 1 of 3; connected: a; with several endpoints the first round needs more "
      "than half of MAX");
  desk.say(2, hello_of(desk, "b", 1, 4));
  desk.beat_for(seconds(31), {1, 2});
  CHECK(!desk.last<StartRound>(1));
  desk.say(3, hello_of(desk, "c", 1, 4));
  desk.beat_for(seconds(31), {1, 2, 3});
  REQUIRE(desk.last<StartRound>(1));
  CHECK(desk.last<StartRound>(1)->group_size == 3);
  CHECK(desk.last<StartRound>(1)->succession.exists());
}

TEST_CASE("later rounds need a majority of the one before, and may have fewer nodes than half") {
  Desk desk;
  for (std::uint64_t link = 1; link <= 4; ++link) {
    desk.say(link, hello_of(desk, std::string(1, static_cast<char>('a' + link - 1)), 1, 4));
  }
  REQUIRE(desk.last<StartRound>(1));
  for (std::uint64_t link = 1; link <= 4; ++link) {
    desk.say(link, desk.report(1, NodeState::kRunning, 5001));
  }
  desk.forget();
  desk.lose(4);
  REQUIRE(desk.last<StartRound>(1));
  CHECK(desk.last<StartRound>(1)->group_size == 3);
}

TEST_CASE("all members of another coordinator's round come: it continues, and is settled") {
  Desk desk;
  desk.say(1, claiming(desk, "a", 0, 2, false));
  CHECK(!desk.last<Waiting>(1));
  CHECK(!desk.run_.decides_after());
  desk.say(2, claiming(desk, "b", 1, 2, false));
  CHECK(!desk.last<StartRound>(1));
  CHECK(!desk.last<Stop>(1));
  CHECK(desk.run_.phase() == Phase::kRunning);
  CHECK(desk.run_.decides_after() == Round(3));
  CHECK(desk.last<Settled>(1)->stamp == RoundStamp{Round(3), "c0"});
}

TEST_CASE("a majority of the members comes: the next round follows without a restart") {
  Desk desk;
  desk.say(1, claiming(desk, "a", 0, 3));
  desk.say(2, claiming(desk, "b", 1, 3));
  desk.after(milliseconds(600));
  const auto round = desk.last<StartRound>(1);
  REQUIRE(round);
  CHECK(round->stamp == RoundStamp{Round(4), "c1"});
  CHECK(round->restarts == RestartCount(0));
  CHECK(round->reason.find("the coordinator at another endpoint was lost") != std::string::npos);
}

TEST_CASE("half of the members come: this coordinator gives up within half a silence limit") {
  Desk desk;
  desk.say(1, claiming(desk, "a", 0, 4));
  desk.say(2, claiming(desk, "b", 1, 4));
  desk.beat_for(seconds(2), {1, 2});
  CHECK(!desk.abdicated_);
  desk.beat_for(seconds(1), {1, 2});
  CHECK(desk.abdicated_);
  CHECK(!desk.last<StartRound>(1));
}

TEST_CASE("a newcomer is here when the nodes of a round come: they need their majority still") {
  Desk desk;
  desk.say(1, hello_of(desk, "d", 1, 4));
  CHECK(desk.last<Waiting>(1));
  desk.say(2, claiming(desk, "a", 0, 4));
  desk.beat_for(seconds(3), {1, 2});
  CHECK(desk.abdicated_);
  CHECK(!desk.last<StartRound>(1));
}

TEST_CASE("nodes with other endpoints are refused, with both lists") {
  Desk desk;
  desk.say(1, hello_of(desk, "a", 1, 4));
  desk.say(2, desk.hello("b", 1, 4));
  const auto refused = desk.last<Refused>(2);
  REQUIRE(refused);
  CHECK(refused->code == RefusalCode::kTermsDiffer);
  CHECK(refused->sentence.find("--rdzv-endpoint a:29400,b:29400, b has one --rdzv-endpoint") !=
        std::string::npos);
  CHECK(desk.run_.has_endpoint("b:29400"));
  CHECK(!desk.run_.has_endpoint("29400"));
  CHECK(!desk.run_.has_endpoint("c:29400"));
}

TEST_CASE("a daemon that was just started begins no run that another one may lead") {
  SuccessionOptions options;
  options.lead_by = TimePoint(seconds(101));
  Desk desk(options);
  desk.say(1, hello_of(desk, "a", 1, 2));
  desk.say(2, hello_of(desk, "b", 1, 2));
  desk.after(milliseconds(999));
  CHECK(!desk.last<StartRound>(1));
  desk.after(milliseconds(2));
  CHECK(desk.last<StartRound>(1));
}

TEST_CASE("that wait is no stall of the daemon to nodes that wait for longer") {
  SuccessionOptions options;
  options.lead_by = TimePoint(seconds(101));
  Desk desk(options);
  Hello hello = hello_of(desk, "a", 2, 2);
  hello.terms.join_timeout = seconds(20);
  desk.say(1, hello);
  desk.beat_for(seconds(19), {1});
  CHECK(!desk.last<Done>(1));
  desk.beat_for(seconds(2), {1});
  CHECK(desk.last<Done>(1));
}
