// A run whose coordinator is followed by another one: docs/FAILOVER.md.
#include "tests/round/succession_scene.hpp"
#include "tests/support/catch.hpp"

using namespace ddprun;
using namespace ddprun::round;
using namespace ddprun::protocol;

TEST_CASE("a round names its successors in group rank order, without the coordinator's node") {
  Desk desk = three_nodes();
  const auto round = desk.last<StartRound>(3);
  REQUIRE(round);
  REQUIRE(round->successors.size() == 2);
  CHECK(round->successors[0] == Successor{1, "b", "10.0.0.2", 7002});
  CHECK(round->successors[1] == Successor{2, "c", "10.0.0.3", 7003});
  CHECK(round->succession == Succession{0, true, true, true, false, round->stamp.author});
}

TEST_CASE("a node that waits is told who may follow the coordinator") {
  Desk desk = three_nodes();
  for (const std::uint64_t link : {1U, 2U, 3U}) {
    desk.say(link, desk.report(1, NodeState::kRunning, static_cast<std::uint16_t>(5000 + link)));
  }
  desk.say(4, standing_by(desk.hello("d", 1, 3), 7004), {"10.0.0.4", "10.0.0.1"});
  REQUIRE(desk.last<Waiting>(4));
  CHECK(desk.last<Waiting>(4)->successors.size() == 2);
}

TEST_CASE("a later round is settled when enough members of the one before have taken it on") {
  Desk desk = three_nodes();
  for (const std::uint64_t link : {1U, 2U, 3U})
    desk.say(link, desk.report(1, NodeState::kStarting));
  CHECK(!desk.last<Settled>(2));  // the first round says so itself
  desk.lose(3);
  CHECK(desk.last<StartRound>(2)->succession.needs == 1);
  desk.say(1, desk.report(2, NodeState::kStarting));
  REQUIRE(desk.last<Settled>(2));
  CHECK(desk.last<Settled>(2)->stamp == desk.last<StartRound>(2)->stamp);
  CHECK(!desk.last<Settled>(1));
}

TEST_CASE("a node that joins has no vote on the round that takes it in") {
  Desk desk(first_coordinator());
  desk.say(1, desk.hello("a", 1, 3, milliseconds(0)));
  desk.after(milliseconds(1));
  desk.say(1, desk.report(1, NodeState::kRunning));
  desk.say(2, desk.hello("b", 1, 3), {"10.0.0.2", "10.0.0.1"});
  REQUIRE(desk.last<StartRound>(2));
  CHECK(!desk.last<StartRound>(2)->succession.has_vote);
  CHECK(desk.last<StartRound>(1)->succession.has_vote);
}

TEST_CASE("a coordinator whose others are silent stops its workers, and says what would help") {
  Desk desk = three_nodes();
  for (const std::uint64_t link : {1U, 2U, 3U}) desk.say(link, desk.report(1, NodeState::kRunning));
  desk.forget();
  desk.beat_for(seconds(6), {1});
  CHECK(desk.run_.phase() == Phase::kForming);
  REQUIRE(desk.last<Stop>(1));
  CHECK(!desk.last<StartRound>(1));
  REQUIRE(desk.last<Waiting>(1));
  CHECK_THAT(desk.last<Waiting>(1)->text, ContainsSubstring("ddprun-rdzvd"));
}

TEST_CASE("a coordinator whose others have ended continues alone") {
  Desk desk = three_nodes();
  for (const std::uint64_t link : {1U, 2U, 3U}) desk.say(link, desk.report(1, NodeState::kRunning));
  desk.forget();
  desk.lose({2, 3});
  REQUIRE(desk.last<StartRound>(1));
  CHECK(desk.last<StartRound>(1)->group_size == 1);
}

// The silent node may yet be refused by this host, and continue with the round of two.
TEST_CASE("what follows a tie of two is not settled until the silent node is back") {
  Desk desk(first_coordinator());
  Hello own = standing_by(desk.hello("a", 1, 2), 7001);
  own.runs_coordinator = true;
  desk.say(1, own);
  desk.say(2, standing_by(desk.hello("b", 1, 2), 7002));
  for (const std::uint64_t link : {1U, 2U}) desk.say(link, desk.report(1, NodeState::kRunning));
  desk.beat_for(seconds(6), {1});
  REQUIRE(desk.last<StartRound>(1)->group_size == 1);
  desk.say(1, desk.report(2, NodeState::kRunning));
  desk.say(3, standing_by(desk.hello("c", 1, 2), 7003), {"10.0.0.3", "10.0.0.1"});
  REQUIRE(desk.last<StartRound>(3));
  CHECK(desk.last<StartRound>(3)->succession.needs == 2);
  desk.say(1, desk.report(3, NodeState::kRunning));
  desk.say(3, desk.report(3, NodeState::kRunning));
  CHECK(!desk.last<Settled>(3));
}

TEST_CASE("a silent one of two that is back as a spare settles nothing") {
  Desk desk(first_coordinator(), 1);
  Hello own = standing_by(desk.hello("a", 1, 2), 7001);
  own.runs_coordinator = true;
  desk.say(1, own);
  desk.say(2, standing_by(desk.hello("b", 1, 2), 7002), {"10.0.0.2", "10.0.0.1"});
  for (const std::uint64_t link : {1U, 2U}) desk.say(link, desk.report(1, NodeState::kRunning));
  desk.say(3, standing_by(desk.hello("c", 1, 2), 7003), {"10.0.0.3", "10.0.0.1"});
  desk.beat_for(seconds(6), {1, 3});
  REQUIRE(desk.last<StartRound>(3));  // in the place of b
  for (const std::uint64_t link : {1U, 3U}) desk.say(link, desk.report(2, NodeState::kRunning));
  Hello back = standing_by(desk.hello_again(1), 7002);
  back.claim->succession = {0, true, true, true};
  desk.say(4, back, {"10.0.0.2", "10.0.0.1"});  // a spare now, and still of round 1
  desk.say(1, desk.failed(2, 1));
  desk.beat_for(seconds(3), {1, 3, 4});
  REQUIRE(desk.last<StartRound>(3)->stamp.number == Round(3));
  CHECK(desk.last<StartRound>(3)->succession.needs == 2);
}

TEST_CASE("a coordinator that led rounds and is left alone does not abdicate, it waits and ends") {
  Desk desk(candidate("c0"));
  for (const int rank : {1, 2, 3}) {
    desk.say(static_cast<std::uint64_t>(rank),
             claiming(desk, std::string(1, static_cast<char>('a' + rank)), rank, 4));
  }
  REQUIRE(desk.last<StartRound>(1));
  const int number = desk.last<StartRound>(1)->stamp.number.value();
  for (const std::uint64_t link : {1U, 2U, 3U})
    desk.say(link, desk.report(number, NodeState::kRunning));
  desk.beat_for(seconds(6), {1});
  REQUIRE(desk.run_.phase() == Phase::kForming);
  Hello late = desk.hello("e", 1, 8);
  late.seen = Round(number + 1);
  desk.say(4, late, {"10.0.0.4", "10.0.0.1"});
  CHECK(desk.run_.phase() == Phase::kForming);
  desk.beat_for(seconds(12), {1, 4});
  CHECK(!desk.abdicated_);
  CHECK(desk.run_.phase() == Phase::kForming);
}

TEST_CASE("a candidate says nothing but heartbeats until a majority is here") {
  Desk desk(candidate("c0"));
  desk.say(1, claiming(desk, "b", 1, 4));
  desk.say(1, Beat{});
  CHECK(desk.last<Beat>(1));
  CHECK(!desk.last<Waiting>(1));
  desk.say(2, claiming(desk, "c", 2, 4));
  desk.after(milliseconds(100));
  CHECK(!desk.last<StartRound>(1));  // the last one may come at once, too
  desk.say(3, claiming(desk, "d", 3, 4));
  REQUIRE(desk.last<StartRound>(1));
  CHECK(desk.last<StartRound>(1)->stamp.number == Round(4));
  CHECK(desk.last<StartRound>(1)->group_size == 3);
  CHECK(desk.last<StartRound>(1)->restarts == RestartCount(0));
  CHECK(desk.last<StartRound>(1)->succession.needs == 2);
  CHECK_THAT(desk.last<StartRound>(1)->reason, ContainsSubstring("lost the coordinator"));
}

// The coordinator that ended was on a node without a part in the round; the next one's own node
// takes heartbeats alone for no answer.
TEST_CASE("all members of a round are back at a candidate: its own node hears of it, too") {
  Desk desk(candidate("c0"));
  const Succession of_others{0, true, false, true};
  Hello own = standing_by(claiming(desk, "b", 0, 3, of_others), 7002);
  own.runs_coordinator = true;
  desk.say(1, own);
  desk.say(2, standing_by(claiming(desk, "c", 1, 3, of_others), 7003), {"10.0.0.3", "10.0.0.2"});
  desk.say(3, standing_by(claiming(desk, "d", 2, 3, of_others), 7004), {"10.0.0.4", "10.0.0.2"});
  CHECK(desk.run_.phase() == Phase::kRunning);
  CHECK(!desk.last<StartRound>(1));  // the round continues
  for (const std::uint64_t link : {1U, 2U, 3U}) CHECK(desk.last<Settled>(link));
}

TEST_CASE("the rest of a majority is waited for, but not for long") {
  Desk desk(candidate("c0"));
  desk.say(1, claiming(desk, "b", 1, 4));
  desk.say(2, claiming(desk, "c", 2, 4));
  desk.after(milliseconds(501));
  REQUIRE(desk.last<StartRound>(1));
  CHECK(desk.last<StartRound>(1)->group_size == 2);
}

TEST_CASE("a refusal is proof: the other one of two continues; silence is none") {
  Desk proof(candidate("c0"));
  proof.say(1, claiming(proof, "b", 1, 2));
  CHECK(proof.last<StartRound>(1));
  Desk none(candidate(""));
  none.say(1, claiming(none, "b", 1, 2));
  none.after(milliseconds(2499));
  CHECK(!none.abdicated_);
  none.beat_for(seconds(1), {1});
  CHECK(none.abdicated_);
  CHECK(!none.last<StartRound>(1));
}

// The name of the endpoint means this host by now; the author may live on the one before.
TEST_CASE("what listens where a name has moved to is no proof of the author's end") {
  for (const bool moved : {false, true}) {
    Desk desk(first_coordinator());
    const Succession of_a{0, true, true, true};
    const Succession of_b{0, true, true, !moved};
    desk.say(1, claiming(desk, "b", 1, 3, of_a));
    desk.say(2, claiming(desk, "c", 2, 3, of_b));
    desk.lose(1);
    desk.beat_for(seconds(1), {2});
    CHECK(desk.last<StartRound>(2).has_value() != moved);
  }
}

TEST_CASE("the end of another coordinator than the round's proves nothing about it") {
  Desk desk(candidate("another"));
  desk.say(1, claiming(desk, "b", 1, 2));
  desk.after(seconds(2));
  CHECK(!desk.last<StartRound>(1));
}

TEST_CASE("a round that may not be settled needs the votes of the one before") {
  const Succession unsettled{3, true, true, false};
  const Succession newcomer{3, false, true, false};
  Desk desk(candidate("c0"));
  desk.say(1, claiming(desk, "b", 1, 4, unsettled));
  desk.say(2, claiming(desk, "c", 2, 4, unsettled));
  desk.say(3, claiming(desk, "d", 3, 4, newcomer));
  desk.beat_for(seconds(2), {1, 2, 3});
  CHECK(!desk.last<StartRound>(1));
  Desk known(candidate("c0"));
  Hello told = claiming(known, "b", 1, 4, unsettled);
  told.claim->settled = true;
  known.say(1, told);
  known.say(2, claiming(known, "c", 2, 4, unsettled));
  known.say(3, claiming(known, "d", 3, 4, newcomer));
  CHECK(known.last<StartRound>(1));
}

TEST_CASE("one node with a newer round that came to nothing does not keep a majority waiting") {
  Desk desk(candidate("c0"));
  Hello newer = claiming(desk, "b", 1, 2, {2, true, true, true});
  newer.claim->stamp.number = Round(4);
  desk.say(1, newer);
  desk.say(2, claiming(desk, "c", 2, 4));
  desk.say(3, claiming(desk, "d", 3, 4));
  desk.after(milliseconds(501));
  REQUIRE(desk.last<StartRound>(2));
  CHECK(desk.last<StartRound>(2)->stamp.number == Round(5));
  CHECK(desk.last<StartRound>(2)->group_size == 3);
  CHECK(!desk.last<StartRound>(1)->succession.has_vote);
}

TEST_CASE("newcomers alone do not make a candidate act") {
  Desk desk(candidate("c0"));
  desk.say(1, desk.hello("x", 1, 2));
  desk.say(2, desk.hello("y", 1, 2));
  desk.after(seconds(40));
  CHECK(!desk.last<StartRound>(1));
  CHECK(!desk.last<Waiting>(1));
}

TEST_CASE("all ranks of the nodes that are left had finished: the run has succeeded") {
  Desk desk(candidate("c0"));
  for (const int rank : {1, 2}) {
    Hello finished = claiming(desk, rank == 1 ? "b" : "c", rank, 3);
    finished.claim->state = NodeState::kSucceeded;
    desk.say(static_cast<std::uint64_t>(rank), finished);
  }
  REQUIRE(desk.last<Done>(1));
  CHECK(desk.last<Done>(1)->exit_code == 0);
}

TEST_CASE("a coordinator that is started again at the endpoint has the place of the one before") {
  Desk desk(first_coordinator());
  desk.say(1, claiming(desk, "b", 1, 2));
  REQUIRE(desk.last<StartRound>(1));
  Desk elsewhere(first_coordinator());
  elsewhere.say(1, claiming(elsewhere, "b", 1, 2, {0, true, true, false}));
  elsewhere.beat_for(seconds(10), {1});
  CHECK(!elsewhere.last<StartRound>(1));
}

TEST_CASE(
    "a failure that the loss of the coordinator explains costs no restart, an older one does") {
  for (const bool unheard : {true, false}) {
    Desk desk(candidate("c0"), 3);
    Hello failed = claiming(desk, "b", 1, 3);
    failed.claim->state = NodeState::kFailed;
    failed.claim->failed_unheard = unheard;
    desk.say(1, failed);
    desk.say(1, desk.failed(3, 7));
    desk.say(2, claiming(desk, "c", 2, 3));
    REQUIRE(desk.last<StartRound>(2));
    CHECK(desk.last<StartRound>(2)->restarts == RestartCount(unheard ? 0 : 1));
  }
}

TEST_CASE("a failure that a candidate hears of first costs no restart") {
  Desk desk(candidate("c0"), 3);
  desk.say(1, claiming(desk, "b", 1, 3));
  desk.say(1, desk.failed(3, 7));
  desk.say(2, claiming(desk, "c", 2, 3));
  REQUIRE(desk.last<StartRound>(2));
  CHECK(desk.last<StartRound>(2)->restarts == RestartCount(0));
}

const std::string kOrigin = "began there";
const Succession kBegunThere{0, true, true, true, false, kOrigin};

/// Of the failed rank of "b", on link 1.
Hello restart_told(Desk& desk, const RoundStamp& stamp) {
  Hello hello = claiming(desk, "b", 1, 3, kBegunThere);
  hello.claim->stamp = stamp;
  hello.claim->state = NodeState::kFailed;
  hello.claim->restarts = RestartCount(1);
  hello.claim->restart_told = true;
  return hello;
}

TEST_CASE("a restart that another coordinator had told is for that one's round alone") {
  for (const std::string author : {"c0", "another"}) {
    SuccessionOptions options = candidate("c0");
    options.candidate->origin = kOrigin;
    Desk desk(options, 3);
    desk.say(4, restart_told(desk, {Round(3), author}));
    desk.say(4, Leave{});
    Hello failed = claiming(desk, "c", 2, 3, kBegunThere);
    failed.claim->state = NodeState::kFailed;
    desk.say(2, failed);
    desk.say(2, desk.failed(3, 7));
    Hello other = claiming(desk, "d", 1, 3, kBegunThere);
    desk.say(3, other);
    REQUIRE(desk.last<StartRound>(3));
    CHECK(desk.last<StartRound>(3)->restarts == RestartCount(author == "c0" ? 1 : 2));
  }
}

TEST_CASE("a run of which no node came back has an origin of its own") {
  Desk desk(first_coordinator());
  Hello late = desk.hello("a", 1, 1);
  late.seen = Round(7);
  desk.say(1, late);
  desk.beat_for(seconds(6), {1});
  REQUIRE(desk.last<StartRound>(1));
  CHECK(desk.run_.rounds().origin() == "c1");
}

// The network gave the link up: the agent may live.
TEST_CASE("a link that the network broke proves no end") {
  Desk desk = three_nodes();
  for (const std::uint64_t link : {1U, 2U, 3U}) desk.say(link, desk.report(1, NodeState::kRunning));
  desk.forget();
  (void)desk.run_.step(LinksLost{{{LinkId(2), "broke", true}, {LinkId(3), "broke", true}}},
                       desk.now_);
  CHECK(desk.run_.phase() == Phase::kForming);
}

TEST_CASE("the budget of the run is that of the claims") {
  Desk desk(candidate("c0"), 3);
  for (const int rank : {1, 2}) {
    Hello hello = claiming(desk, rank == 1 ? "b" : "c", rank, 3);
    hello.claim->restarts = RestartCount(2);
    desk.say(static_cast<std::uint64_t>(rank), hello);
  }
  REQUIRE(desk.last<StartRound>(1));
  CHECK(desk.last<StartRound>(1)->restarts == RestartCount(2));
}

TEST_CASE(
    "members that come back from another coordinator's round do not count for the one before") {
  Desk desk(first_coordinator());
  Hello own = standing_by(desk.hello("a", 1, 4), 7001);
  own.runs_coordinator = true;
  desk.say(1, own);
  for (const std::uint64_t link : {2U, 3U, 4U}) {
    const std::string host(1, static_cast<char>('a' + link - 1));
    desk.say(link, standing_by(desk.hello(host, 1, 4), 7002), {"10.0.0.2", "10.0.0.1"});
  }
  for (const std::uint64_t link : {1U, 2U, 3U, 4U})
    desk.say(link, desk.report(1, NodeState::kRunning));
  desk.beat_for(seconds(4), {1});
  const auto later = [&](const std::string& host, int rank) {
    Hello back = desk.hello(host, 1, 4);
    back.claim = Claim{{Round(2), "c2"}, rank, 3, RestartCount(0), NodeState::kRunning};
    back.claim->succession = {3, true, false, false, false, desk.run_.rounds().origin()};
    return back;
  };
  desk.forget();
  desk.lose({2, 3, 4});
  desk.say(5, later("b", 0), {"10.0.0.2", "10.0.0.1"});
  CHECK(desk.run_.phase() != Phase::kRunning);
  CHECK(!desk.run_.authority().decides_after());
  desk.say(6, later("c", 1), {"10.0.0.3", "10.0.0.1"});
  CHECK(!desk.last<StartRound>(1));  // two of three, and it may be unsettled
  desk.say(7, later("d", 2), {"10.0.0.4", "10.0.0.1"});
  desk.beat_for(seconds(2), {1, 5, 6, 7});
  REQUIRE(desk.last<StartRound>(1));
  CHECK(desk.last<StartRound>(1)->stamp.number == Round(3));
}
