// Silence where too few nodes would be left for a round: nothing is stopped, the round waits.
#include "tests/round/succession_scene.hpp"
#include "tests/support/catch.hpp"

using namespace ddprun;
using namespace ddprun::round;
using namespace ddprun::protocol;

namespace {

/// Nodes "a" and "b", of which both are needed; "b" has been silent for longer than the limit.
Desk one_of_two_silent(int max_restarts = 0) {
  Desk desk(max_restarts);
  desk.join_two();
  desk.both_run();
  desk.forget();
  desk.beat_for(seconds(8), {1});
  return desk;
}

/// The node answers what it was asked.
void answer(Desk& desk, std::uint64_t link) {
  const auto asked = desk.last<Beat>(link);
  REQUIRE(asked);
  REQUIRE(asked->echo);
  desk.say(link, Beat{*asked->echo});
}

bool has_note(const Desk& desk, const std::string& words) {
  return std::any_of(desk.notes_.begin(), desk.notes_.end(), [&words](const std::string& note) {
    return note.find(words) != std::string::npos;
  });
}

/// Nodes "a" (with the coordinator), "b", "c", all of which are needed, in round 1.
Desk three_needed(int max_restarts = 0) {
  Desk desk(first_coordinator(), max_restarts);
  int port = 7001;
  for (const char* host : {"a", "b", "c"}) {
    Hello hello = standing_by(desk.hello(host, 3, 3), port++);
    hello.runs_coordinator = hello.host == "a";
    desk.say(static_cast<std::uint64_t>(port - 7001), hello, {"10.0.0.2", "10.0.0.1"});
  }
  for (const std::uint64_t link : {1U, 2U, 3U}) desk.say(link, desk.report(1, NodeState::kRunning));
  desk.forget();
  return desk;
}

}  // namespace

TEST_CASE("silence that leaves too few nodes stops no rank, and all are told what is awaited") {
  Desk desk = one_of_two_silent();
  CHECK(desk.run_.phase() == Phase::kRunning);
  CHECK(desk.closed_.empty());
  CHECK(!desk.last<Stop>(1));
  REQUIRE(desk.last<Waiting>(1));
  CHECK_THAT(desk.last<Waiting>(1)->text, ContainsSubstring("no heartbeat from b for 5 s"));
  CHECK_THAT(desk.last<Waiting>(1)->text, ContainsSubstring("the round is kept"));
  CHECK(desk.last<Waiting>(1)->left > minutes(9));
  CHECK(desk.run_.status(desk.now_).why == desk.last<Waiting>(1)->text);
}

TEST_CASE("a silent node whose last report ends the run gets the verdict") {
  Desk desk = one_of_two_silent();
  desk.say(1, desk.report(1, NodeState::kSucceeded));
  desk.say(2, desk.report(1, NodeState::kSucceeded));  // before it answers what it was asked
  REQUIRE(desk.last<Done>(2));
  CHECK(desk.last<Done>(2)->exit_code == 0);
}

TEST_CASE("a silent node that answers on its link is in the round as before") {
  Desk desk = one_of_two_silent();
  answer(desk, 2);
  CHECK(has_note(desk, "b (rank 1) is back after 8 s; round 1 continues"));
  CHECK_THAT(desk.last<Waiting>(1)->text, ContainsSubstring("is back"));
  desk.say(1, desk.report(1, NodeState::kSucceeded));
  desk.say(2, desk.report(1, NodeState::kSucceeded));
  REQUIRE(desk.last<Done>(1));
  CHECK(desk.last<Done>(1)->exit_code == 0);
  CHECK(desk.run_.status(desk.now_).counters.losses == 0);
}

TEST_CASE("a silent node that comes back over another link is in the round as before") {
  Desk desk = one_of_two_silent();
  desk.say(2, Reconnecting{"no heartbeat for 5 s"});
  desk.beat_for(seconds(20), {1});
  CHECK(desk.run_.phase() == Phase::kRunning);
  desk.say(3, desk.hello_again());
  CHECK(has_note(desk, "is back after"));
  desk.beat_for(seconds(20), {1, 3});
  CHECK(desk.run_.phase() == Phase::kRunning);
  CHECK(desk.run_.status(desk.now_).round.number == Round(1));
}

TEST_CASE("a silent node whose link ends is lost at once") {
  Desk desk = one_of_two_silent();
  desk.lose(2);
  CHECK(desk.run_.phase() == Phase::kForming);
  CHECK(desk.last<Stop>(1));
}

TEST_CASE("a node takes the place of a silent one, with its node rank or without one") {
  for (const bool numbered : {true, false}) {
    Desk desk;
    for (const int rank : {0, 1}) {
      Hello hello = desk.hello(rank == 0 ? "a" : "b", 2, 2);
      if (numbered) hello.node_rank = rank;
      desk.say(static_cast<std::uint64_t>(rank + 1), hello);
    }
    desk.both_run();
    desk.beat_for(seconds(8), {1});
    desk.forget();
    Hello hello = desk.hello("c", 2, 2);
    if (numbered) hello.node_rank = 1;
    desk.say(3, hello);
    CHECK(!desk.last<Refused>(3));
    REQUIRE(desk.last<StartRound>(3));
    CHECK(desk.last<StartRound>(1)->stamp.number == Round(2));
    CHECK(desk.last<StartRound>(1)->restarts == RestartCount(0));
    CHECK(!desk.last<Waiting>(3));
  }
}

TEST_CASE("a silent node is awaited for join_timeout, and the run ends with that") {
  Desk desk = one_of_two_silent();
  desk.beat_for(minutes(10) - seconds(4), {1});
  CHECK(desk.run_.phase() == Phase::kRunning);
  desk.beat_for(seconds(2), {1});
  CHECK(desk.last<Stop>(1));
  desk.say(1, Stopped{Round(1)});
  REQUIRE(desk.last<Done>(1));
  CHECK(desk.last<Done>(1)->exit_code == kExitNodeLost);
  CHECK_THAT(desk.last<Done>(1)->text, ContainsSubstring("lost b"));
}

TEST_CASE("a failure, a stop and the end of the coordinator do not wait for a silent node") {
  for (const int what : {0, 1, 2}) {
    Desk desk = one_of_two_silent();
    if (what == 0) desk.say(1, desk.failed(1, 3));
    if (what == 1) desk.say(1, Leave{143, "SIGTERM received", Round(1), true});
    if (what == 2) desk.shut_down();
    if (what == 1) {
      CHECK(desk.run_.over());
      continue;
    }
    CHECK(desk.run_.phase() == Phase::kStopping);
    desk.say(1, Stopped{Round(1)});
    REQUIRE(desk.last<Done>(1));
    CHECK(desk.last<Done>(1)->exit_code == (what == 0 ? 3 : 143));
  }
}

TEST_CASE("a failure beside a silent node uses a restart, and the next round awaits a node") {
  Desk desk = one_of_two_silent(1);
  desk.say(1, desk.failed(1, 3));
  CHECK(desk.run_.phase() == Phase::kForming);
  CHECK(!desk.last<StartRound>(1));
  desk.say(1, Stopped{Round(1)});
  desk.say(3, desk.hello_again());
  REQUIRE(desk.last<StartRound>(1));
  CHECK(desk.last<StartRound>(1)->restarts == RestartCount(1));
}

TEST_CASE("a node that fell silent as its round began owes its answer from when it is back") {
  Desk desk;
  desk.join_two();
  desk.say(1, desk.report(1, NodeState::kStarting, 4001));
  desk.beat_for(3 * kAnswerMax, {1});
  CHECK(!desk.last<Refused>(2));
  answer(desk, 2);
  desk.beat_for(kAnswerMax - milliseconds(1), {1, 2});
  CHECK(!desk.last<Refused>(2));
  desk.after(milliseconds(1));
  CHECK(desk.last<Refused>(2));
}

TEST_CASE("nodes that more than MIN remain without are lost, and the others continue") {
  Desk desk;
  for (const int node : {1, 2, 3, 4}) {
    desk.say(static_cast<std::uint64_t>(node),
             desk.hello(std::string(1, static_cast<char>('a' + node)), 2, 4));
  }
  for (const std::uint64_t link : {1U, 2U, 3U, 4U})
    desk.say(link, desk.report(1, NodeState::kRunning, 5001));
  desk.beat_for(seconds(6), {1});  // all others are silent: none can be spared
  CHECK(desk.run_.phase() == Phase::kRunning);
  answer(desk, 3);  // now a round of two is allowed
  REQUIRE(desk.last<StartRound>(3));
  CHECK(desk.last<StartRound>(3)->group_size == 2);
}

TEST_CASE("a link that the network breaks below MIN is silence, else a loss") {
  for (const int least : {1, 2}) {
    Desk desk;
    desk.join_two(least);
    desk.both_run();
    desk.break_link(2);
    CHECK((desk.run_.phase() == Phase::kRunning &&
           desk.run_.status(desk.now_).round.number == Round(1)) == (least == 2));
  }
}

TEST_CASE("a coordinator without a majority keeps its ranks, and yields to another one's") {
  Desk desk = three_needed();
  CHECK(desk.run_.authority().decides_after() == Round(1));
  desk.beat_for(seconds(8), {1});
  CHECK(desk.run_.phase() == Phase::kRunning);
  CHECK(!desk.last<Stop>(1));
  CHECK(!desk.run_.authority().decides_after());
  Lead lead;
  lead.round = Round(1);
  lead.origin = desk.run_.rounds().origin();
  CHECK(desk.run_.yields_to(lead, true));
  answer(desk, 2);
  CHECK(desk.run_.authority().decides_after() == Round(1));
}

// Its answer counts, not what it had said before it left for another coordinator.
TEST_CASE("what a silent node said before is no vote for its coordinator") {
  Desk desk = three_needed();
  desk.beat_for(seconds(8), {1});
  desk.say(2, Beat{});
  CHECK(!desk.run_.authority().decides_after());
}

TEST_CASE("a coordinator stops its ranks where the silent nodes may continue without it") {
  Desk desk(first_coordinator());
  int port = 7001;
  for (const char* host : {"a", "b", "c"}) {
    Hello hello = standing_by(desk.hello(host, 2, 3), port++);
    hello.runs_coordinator = hello.host == "a";
    desk.say(static_cast<std::uint64_t>(port - 7001), hello, {"10.0.0.2", "10.0.0.1"});
  }
  for (const std::uint64_t link : {1U, 2U, 3U}) desk.say(link, desk.report(1, NodeState::kRunning));
  desk.beat_for(seconds(8), {1});
  CHECK(desk.run_.phase() == Phase::kForming);
  CHECK(desk.last<Stop>(1));
}

TEST_CASE("a candidate with a majority below MIN keeps the ranks, and speaks for the run") {
  Desk desk(candidate(""));
  const auto claims = [&desk](const char* host, int rank) {
    Hello hello = claiming(desk, host, rank, 3);
    hello.terms.nodes_min = hello.terms.nodes_max = 3;
    return hello;
  };
  desk.say(1, claims("b", 1));
  desk.say(2, claims("c", 2));
  desk.beat_for(seconds(20), {1, 2});
  CHECK(desk.run_.phase() == Phase::kRebuilding);
  CHECK(!desk.last<Stop>(1));
  CHECK(!desk.abdicated_);
  REQUIRE(desk.last<Waiting>(2));
  CHECK_THAT(desk.last<Waiting>(2)->text, ContainsSubstring("the round is kept"));
  CHECK(desk.run_.authority().decides_after() == Round(3));
  SECTION("the round is whole again when the last one comes") {
    desk.say(3, claims("a", 0));
    CHECK(desk.run_.phase() == Phase::kRunning);
    CHECK(desk.run_.status(desk.now_).round.number == Round(3));
    CHECK(!desk.last<StartRound>(1));
  }
  SECTION("a failure is one of the run") {
    desk.say(1, desk.failed(3, 9));
    CHECK(desk.run_.phase() == Phase::kStopping);
  }
  SECTION("the success of those that are here waits for the missing one, which may fail") {
    for (const std::uint64_t link : {1U, 2U}) desk.say(link, desk.report(3, NodeState::kSucceeded));
    desk.beat_for(seconds(20), {1, 2});
    CHECK(!desk.last<Done>(1));
    const bool comes = GENERATE(true, false);
    if (comes) {
      desk.say(3, claims("a", 0));
      CHECK(desk.run_.phase() == Phase::kRunning);
      desk.say(3, desk.failed(3, 9));
      desk.say(3, Stopped{Round(3)});
    } else {
      desk.beat_for(minutes(10), {1, 2});
    }
    REQUIRE(desk.last<Done>(1));
    CHECK(desk.last<Done>(1)->exit_code == (comes ? 9 : 0));
  }
  SECTION("another node takes the place") {
    Hello fresh = desk.hello("d", 3, 3);
    desk.say(3, fresh);
    REQUIRE(desk.last<StartRound>(3));
    CHECK(desk.last<StartRound>(3)->stamp.number == Round(4));
  }
  SECTION("a member whose process ends takes the round with it") {
    desk.lose(2);
    CHECK(desk.run_.phase() == Phase::kForming);
    CHECK(desk.last<Stop>(1));
  }
}

TEST_CASE("a candidate does not wait for a coordinator whose process has ended") {
  Desk desk(candidate("c0"));
  for (const int rank : {1, 2}) {
    Hello hello = claiming(desk, rank == 1 ? "b" : "c", rank, 3);
    hello.terms.nodes_min = hello.terms.nodes_max = 3;
    desk.say(static_cast<std::uint64_t>(rank), hello);
  }
  desk.beat_for(seconds(1), {1, 2});
  CHECK(desk.run_.phase() == Phase::kForming);
}

TEST_CASE("after a restart of the coordinator a node that does not come is awaited below MIN") {
  for (const int least : {1, 2}) {
    Desk desk;
    Hello first = desk.hello("a", least, 2);
    first.claim = Claim{{Round(1), "c0"}, 0, 2, RestartCount(0), NodeState::kRunning};
    desk.say(1, first);
    desk.beat_for(seconds(20), {1});
    CHECK(desk.last<Stop>(1).has_value() == false);
    if (least == 1) {
      CHECK(desk.last<StartRound>(1));
      continue;
    }
    CHECK(desk.run_.phase() == Phase::kRebuilding);
    Hello second = desk.hello_again(2);
    second.claim->stamp.author = "c0";
    desk.say(2, second);
    CHECK(desk.run_.phase() == Phase::kRunning);
    CHECK(desk.run_.status(desk.now_).round.number == Round(1));
  }
}
