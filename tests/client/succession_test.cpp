// An agent whose coordinator is lost, and that follows it or takes its place: docs/FAILOVER.md.
#include "tests/client/seat.hpp"

using namespace ddprun;
using namespace ddprun::client;

namespace {

/// In round 1 of three nodes, of which the coordinator's is rank 0.
Seat in_round(int own) {
  Seat seat(seconds(60), 3);
  seat.connect();
  StartRound start = seat.round(1, own);
  start.group_size = 3;
  start.world_size = WorldSize(3);
  start.role_world_size = 3;
  start.succession = {0, true, true, true};
  start.successors = {{1, "gpu-02", "10.0.4.12", 7002}, {2, "gpu-03", "10.0.4.13", 7003}};
  seat.hear(start);
  seat.feed(GroupRunning{Round(1)});
  seat.forget();
  return seat;
}

LinkDown refused(const Seat& seat) {
  return {seat.link_, "10.0.4.11:29400: connection refused", true};
}

/// Its link ends, and the kernel of the coordinator's host refuses the next one.
Seat after_refusal(int own) {
  Seat seat = in_round(own);
  seat.feed(LinkDown{seat.link_, "it closed the connection"});
  CHECK(seat.done<Connect>());  // at once
  seat.forget();
  seat.feed(refused(seat));
  return seat;
}

}  // namespace

TEST_CASE("a refused connection leads to the first successor, with the round as the claim") {
  Seat seat = after_refusal(2);
  REQUIRE(seat.done<Connect>());
  CHECK(seat.done<Connect>()->to == Place{"gpu-02", "10.0.4.12", 7002});
  CHECK(!seat.done<Coordinate>());
  CHECK(!seat.done<StopGroup>());
  seat.feed(LinkUp{seat.link_});
  REQUIRE(seat.said<Hello>());
  CHECK(seat.said<Hello>()->claim->stamp.number == Round(1));
  CHECK(seat.said<Hello>()->claim->succession == Succession{0, true, true, true});
  CHECK(!seat.said<Hello>()->runs_coordinator);
}

TEST_CASE("the first successor becomes a candidate, and names the author that has ended") {
  Seat seat = after_refusal(1);
  REQUIRE(seat.done<Coordinate>());
  CHECK(seat.done<Coordinate>()->ended_author == "c1");
  CHECK(seat.done<Connect>()->to == Place{"gpu-02", "10.0.4.12", 7002});
  seat.feed(LinkUp{seat.link_});
  CHECK(seat.said<Hello>()->runs_coordinator);
}

TEST_CASE("a coordinator that is silent is not said to have ended") {
  Seat seat = in_round(1);
  for (int i = 0; i < 6 && !seat.done<Coordinate>(); ++i) seat.after(seconds(1));
  REQUIRE(seat.done<Coordinate>());
  CHECK(seat.done<Coordinate>()->ended_author.empty());
}

TEST_CASE("heartbeats of a candidate are no answer, its round is") {
  Seat seat = after_refusal(2);
  seat.feed(LinkUp{seat.link_});
  seat.hear(Beat{});
  CHECK(!seat.membership_.has_coordinator());
  StartRound next = seat.round(2, 1);
  next.stamp.author = "c2";
  next.succession = {2, true, true, false};
  seat.hear(next);
  CHECK(seat.membership_.has_coordinator());
  CHECK(seat.membership_.round() == Round(2));
  // It is looked for there from now on.
  seat.forget();
  seat.feed(LinkDown{seat.link_, "it closed the connection"});
  seat.after(seconds(1));
  REQUIRE(seat.done<Connect>());
  CHECK(seat.done<Connect>()->to == Place{"gpu-02", "10.0.4.12", 7002});
}

TEST_CASE("a run that has its verdict is taken on by no other node") {
  Seat seat = in_round(1);
  Stop stop{Round(1), 15, milliseconds(0), "gpu-01 leaves"};
  stop.verdict = Done{143, "gpu-01, which runs the coordinator, leaves"};
  seat.hear(stop);
  seat.feed(LinkDown{seat.link_, "it closed the connection"});
  for (int i = 0; i < 10; ++i) {
    seat.after(seconds(1));
    seat.feed(refused(seat));
  }
  CHECK(!seat.done<Coordinate>());
  CHECK(!seat.done<End>());  // a worker is left
  seat.feed(GroupGone{Round(1)});
  seat.after(seconds(2));
  seat.feed(refused(seat));
  REQUIRE(seat.done<End>());
  CHECK(seat.done<End>()->exit_code == 143);
}

TEST_CASE("a server of another run at a successor's port is passed by") {
  Seat seat = after_refusal(2);
  seat.feed(LinkUp{seat.link_});
  seat.forget();
  seat.hear(Refused{RefusalCode::kWrongRun, "this coordinator serves another run", {}});
  CHECK(!seat.done<End>());
  CHECK(seat.done<Coordinate>());  // the next one is this node
}

TEST_CASE("a failure since which the coordinator was silent is claimed as such") {
  for (const bool heard : {true, false}) {
    Seat seat = in_round(1);
    seat.after(milliseconds(10));
    seat.feed(GroupFailed{Round(1), WorkerExit()});
    seat.after(milliseconds(10));
    if (heard) seat.hear(Beat{});
    seat.feed(LinkDown{seat.link_, "it closed the connection"});
    seat.feed(LinkUp{seat.link_});
    REQUIRE(seat.said<Hello>()->claim);
    CHECK(seat.said<Hello>()->claim->failed_unheard == !heard);
  }
}

TEST_CASE("without a majority the coordinator is looked for where it was, until its time is over") {
  Seat seat = after_refusal(1);
  seat.feed(LinkUp{seat.link_});
  seat.forget();
  seat.feed(client::Abdicated{"no majority of the nodes came"});
  CHECK(seat.done<Withdraw>());
  CHECK(seat.done<CloseLink>());
  for (int i = 0; i < 700 && !seat.done<End>(); ++i) {
    seat.after(milliseconds(100));
    if (seat.done<Connect>()) seat.feed(refused(seat));
    if (seat.done<Coordinate>()) seat.feed(client::Abdicated{"no majority"});
  }
  REQUIRE(seat.done<StopGroup>());
  seat.feed(GroupGone{Round(1)});
  REQUIRE(seat.done<End>());
  CHECK(seat.done<End>()->exit_code == kExitCoordinatorLost);
  CHECK_THAT(seat.done<End>()->text, ContainsSubstring("ddprun-rdzvd"));
}

TEST_CASE("a coordinator that hands its agents over is followed") {
  Seat seat = in_round(1);
  seat.hear(Moved{"10.0.4.12", 7002});
  CHECK(seat.done<CloseLink>());
  seat.after(milliseconds(100));
  REQUIRE(seat.done<Connect>());
  CHECK(seat.done<Connect>()->to == Place{"10.0.4.12", "10.0.4.12", 7002});
  Seat misled = in_round(1);
  misled.hear(Moved{"0.0.0.0", 7002});
  CHECK(!misled.done<CloseLink>());
}

// It handed its nodes over when this one was on its way to it, and waits for others to lead.
TEST_CASE("a node that is turned away where it was sent asks the endpoint, and there again") {
  const Place sent{"10.0.4.12", "10.0.4.12", 7002};
  Seat seat(seconds(60), 3);
  seat.connect();
  seat.hear(Moved{sent.address, sent.port});
  for (int times = 0; times < 2; ++times) {
    seat.forget();
    seat.after(seconds(1));
    REQUIRE(seat.done<Connect>());
    CHECK(seat.done<Connect>()->to == sent);
    seat.feed(LinkUp{seat.link_});
    seat.feed(LinkDown{seat.link_, "connection reset by peer"});
    seat.forget();
    seat.after(seconds(2));
    REQUIRE(seat.done<Connect>());
    CHECK_FALSE(seat.done<Connect>()->to);
    seat.feed(LinkDown{seat.link_, "it closed the connection"});
  }
}

TEST_CASE("what a coordinator settled is part of the claim, for that round only") {
  Seat seat = in_round(1);
  StartRound next = seat.round(2, 1);
  next.succession = {2, true, true, true};
  next.group_size = 3;
  next.world_size = WorldSize(3);
  next.role_world_size = 3;
  seat.hear(next);
  seat.hear(Settled{{Round(2), "another"}});
  seat.feed(LinkDown{seat.link_, "it closed the connection"});
  seat.after(seconds(1));
  seat.feed(LinkUp{seat.link_});
  CHECK(!seat.said<Hello>()->claim->settled);
  seat.hear(Settled{{Round(2), "c1"}});
  seat.feed(LinkDown{seat.link_, "it closed the connection"});
  seat.after(seconds(1));
  seat.feed(LinkUp{seat.link_});
  CHECK(seat.said<Hello>()->claim->settled);
}

TEST_CASE("a coordinator that was followed by another one is remembered, to be told") {
  Seat seat = after_refusal(2);
  seat.feed(LinkUp{seat.link_});
  StartRound next = seat.round(2, 1);
  next.stamp.author = "c2";
  next.succession = {2, true, true, false};
  seat.hear(next);
  CHECK(seat.membership_.former_coordinators().empty());  // the endpoint is told anyway
  seat.hear(Moved{"10.0.4.13", 7003});
  REQUIRE(seat.membership_.former_coordinators().size() == 1);
  CHECK(seat.membership_.former_coordinators()[0] == Place{"gpu-02", "10.0.4.12", 7002});
}

TEST_CASE("a candidate that learns of a coordinator elsewhere is none any more") {
  Seat seat = after_refusal(1);
  seat.feed(LinkUp{seat.link_});
  seat.forget();
  seat.hear(Moved{"10.0.4.13", 7003});
  CHECK(seat.done<Withdraw>());
  CHECK(!seat.membership_.has_coordinator());
  seat.after(seconds(1));
  REQUIRE(seat.done<Connect>());
  CHECK(seat.done<Connect>()->to == Place{"10.0.4.13", "10.0.4.13", 7003});
  seat.feed(LinkUp{seat.link_});
  CHECK(!seat.said<Hello>()->runs_coordinator);
}

TEST_CASE("a name of the endpoint that means another host by now is not where the author was") {
  for (const bool elsewhere : {false, true}) {
    Seat seat = in_round(2);
    seat.feed(LinkDown{seat.link_, "it closed the connection"});
    seat.feed(LinkUp{seat.link_, elsewhere});
    REQUIRE(seat.said<Hello>());
    CHECK(seat.said<Hello>()->claim->succession.at_endpoint != elsewhere);
  }
}

TEST_CASE("a coordinator that resigns says why it is lost, and why another node coordinates") {
  const std::string why = "gpu-09 (rank 0) left: SIGTERM received";
  Seat seat = in_round(1);
  seat.hear(Resigned{why, true});
  REQUIRE(seat.done<Note>());
  CHECK(seat.done<Note>()->text.starts_with(why));
  CHECK(seat.done<Connect>());
  seat.feed(refused(seat));
  REQUIRE(seat.done<Coordinate>());
  CHECK(seat.done<Coordinate>()->ended_author == "c1");
  CHECK(seat.done<Coordinate>()->why == why + "; gpu-01 coordinates the run");
  seat.feed(LinkUp{seat.link_});
  CHECK(seat.said<Hello>()->claim->cut_short);
}

TEST_CASE("a restart that the coordinator had told is part of the claim") {
  Seat seat = in_round(2);
  CHECK(!seat.membership_.ended());
  Stop stop;
  stop.round = Round(1);
  stop.waits = true;
  stop.restarts = 0;
  seat.hear(stop);
  seat.feed(LinkDown{seat.link_, "it closed the connection"});
  seat.feed(LinkUp{seat.link_});
  REQUIRE(seat.said<Hello>());
  CHECK(seat.said<Hello>()->claim->restart_told);
}
