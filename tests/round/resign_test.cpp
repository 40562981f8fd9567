// The coordinator's own node is told to leave: docs/FAILOVER.md.
#include "tests/round/succession_scene.hpp"
#include "tests/support/catch.hpp"

using namespace ddprun;
using namespace ddprun::round;
using namespace ddprun::protocol;

namespace {

Leave told_to_leave() {
  return {143, "SIGTERM received", Round(1), true};
}

}  // namespace

TEST_CASE("the coordinator's node leaves: the others are told, and find another coordinator") {
  Desk desk = three_nodes();
  for (const std::uint64_t link : {1U, 2U, 3U}) desk.say(link, desk.report(1, NodeState::kRunning));
  desk.forget();
  desk.say(1, told_to_leave());
  CHECK(desk.resigned_);
  REQUIRE(desk.last<LetGo>(1));
  CHECK(desk.last<LetGo>(1)->text == reasons::continues_elsewhere(2));
  for (const std::uint64_t link : {2U, 3U}) {
    REQUIRE(desk.last<Resigned>(link));
    CHECK_THAT(desk.last<Resigned>(link)->reason, ContainsSubstring("a (rank 0) left: SIGTERM"));
    CHECK(desk.last<Resigned>(link)->cuts_short);
    CHECK(!desk.last<Done>(link));
    CHECK(!desk.last<StartRound>(link));
  }
  desk.say(2, desk.failed(1, 1));
  desk.after(seconds(60));
  desk.say(5, standing_by(desk.hello("d", 1, 3), 7004));
  CHECK(!desk.last<StartRound>(2));  // it decides nothing more
  CHECK(!desk.last<Done>(5));
}

TEST_CASE("the coordinator's node leaves and the others cannot continue: the run ends") {
  enum class Why { kTooFew, kNobodyStandsBy, kSilent, kOwnError };
  for (const Why why : {Why::kTooFew, Why::kNobodyStandsBy, Why::kSilent, Why::kOwnError}) {
    Desk desk(first_coordinator());
    const int least = why == Why::kTooFew ? 3 : 1;
    const int port = why == Why::kNobodyStandsBy ? 0 : 7002;
    Hello own = standing_by(desk.hello("a", least, 3), 7001);
    own.runs_coordinator = true;
    desk.say(1, own);
    desk.say(2, standing_by(desk.hello("b", least, 3), port), {"10.0.0.2", "10.0.0.1"});
    desk.say(3, standing_by(desk.hello("c", least, 3), port), {"10.0.0.3", "10.0.0.1"});
    for (const std::uint64_t link : {1U, 2U, 3U})
      desk.say(link, desk.report(1, NodeState::kRunning));
    if (why == Why::kSilent)
      (void)desk.run_.step(LinksLost{{{LinkId(3), "broke", true}}}, desk.now_);
    Leave leave = told_to_leave();
    leave.requested = why != Why::kOwnError;
    desk.say(1, leave);
    if (why == Why::kSilent) desk.say(2, desk.report(2, NodeState::kStarting));  // of two
    CAPTURE(static_cast<int>(why));
    CHECK(!desk.resigned_);
    CHECK(!desk.last<Resigned>(2));
    CHECK(desk.run_.phase() != Phase::kRunning);
  }
}

TEST_CASE("the coordinator's node leaves as a round begins: it resigns when that is settled") {
  for (const bool settles : {true, false}) {
    Desk desk(first_coordinator());
    for (std::uint64_t link = 1; link <= 4; ++link) {
      const std::string host(1, static_cast<char>('a' + link - 1));
      Hello hello = standing_by(desk.hello(host, 1, 4), 7001);
      hello.runs_coordinator = link == 1;
      desk.say(link, hello, {"10.0.0." + std::to_string(link), "10.0.0.1"});
    }
    for (const std::uint64_t link : {1U, 2U, 3U, 4U})
      desk.say(link, desk.report(1, NodeState::kRunning));
    desk.lose(4);
    desk.forget();
    desk.say(1, told_to_leave());
    desk.say(1, Stopped{Round(1), milliseconds(2), 0, 1});  // its own ranks, of the round before
    desk.say(1, Stopped{Round(2), milliseconds(2), 0, 1});
    CHECK(!desk.resigned_);
    CHECK(!desk.last<Stop>(2));
    desk.say(2, desk.report(2, NodeState::kStarting));
    settles ? desk.say(3, desk.report(2, NodeState::kStarting)) : desk.lose(3);
    CHECK(desk.resigned_ == settles);
    CHECK(desk.last<Resigned>(2).has_value() == settles);
  }
}

TEST_CASE("a candidate whose node leaves only closes its links") {
  Desk desk(candidate("c0"));
  Hello own = claiming(desk, "b", 1, 5);
  own.runs_coordinator = true;
  desk.say(1, own);
  desk.say(2, claiming(desk, "c", 2, 5));
  desk.say(1, told_to_leave());
  CHECK(desk.resigned_);
  CHECK(!desk.last<Resigned>(2));
  CHECK(!desk.last<Stop>(2));
  CHECK(!desk.last<Done>(2));
}

TEST_CASE("a round whose ranks were stopped as its coordinator resigned is no success") {
  for (const bool cut_short : {true, false}) {
    Desk desk(candidate("c0"));
    for (const int rank : {1, 2}) {
      Hello hello = claiming(desk, rank == 1 ? "b" : "c", rank, 3);
      hello.claim->state = NodeState::kSucceeded;
      hello.claim->cut_short = cut_short && rank == 2;  // the other one was not told
      desk.say(static_cast<std::uint64_t>(rank), hello);
    }
    CHECK(desk.last<StartRound>(1).has_value() == cut_short);
    CHECK(desk.last<Done>(1).has_value() != cut_short);
  }
}
