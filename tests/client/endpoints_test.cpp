// An agent of a run with several endpoints, at each of which a ddprun-rdzvd may coordinate it.
#include "tests/client/seat.hpp"

using namespace ddprun;
using namespace ddprun::client;

namespace {

const Place kFirst{"a", "a", 29400};
const Place kSecond{"b", "b", 29400};
const Place kThird{"c", "c", 29401};

MembershipOptions with_endpoints(std::vector<Place> endpoints) {
  MembershipOptions options = Seat::options(seconds(60), 3);
  options.coordinator = "a:29400,b:29400";
  options.endpoints = std::move(endpoints);
  return options;
}

Seat at_start(std::vector<Place> endpoints = {kFirst, kSecond}) {
  Seat seat(with_endpoints(std::move(endpoints)));
  seat.feed(StoreOpened{4000});
  return seat;
}

void refuse(Seat& seat) {
  seat.feed(LinkDown{seat.link_, "connection refused", true});
}

/// Waits at the second endpoint: nothing listened at the first.
Seat at_second() {
  Seat seat = at_start();
  refuse(seat);
  seat.feed(LinkUp{seat.link_});
  seat.hear(Waiting{1, 2, 3, Round(0), milliseconds(0), "1 node joined, waiting for 1 more"});
  return seat;
}

/// In round 1, which the coordinator at `endpoint` (the first or the second) has formed.
Seat in_round(int rank, bool settled = true) {
  Seat seat = at_start();
  seat.feed(LinkUp{seat.link_});
  StartRound start = seat.round(1, rank);
  start.succession = {settled ? 0 : 2, true, false, false};
  seat.hear(start);
  seat.feed(GroupRunning{Round(1)});
  seat.forget();
  return seat;
}

}  // namespace

TEST_CASE("the first endpoint is tried first, and the next one at once if it refuses") {
  Seat seat = at_start();
  CHECK(!seat.done<Connect>()->to);  // where the run's endpoint is
  refuse(seat);
  CHECK(seat.done<Connect>()->to == kSecond);
  refuse(seat);
  seat.forget();
  seat.after(seconds(1));
  REQUIRE(seat.done<Connect>());
  CHECK(!seat.done<Connect>()->to);
}

TEST_CASE("an endpoint that does not answer is left after a quarter of the silence limit") {
  Seat seat = at_start();
  seat.after(milliseconds(1250));
  CHECK(seat.done<Connect>()->to == kSecond);
}

TEST_CASE("an agent says where the coordinator is, and a lost one leads to the others in order") {
  Seat seat = at_start({kFirst, kSecond, kThird});
  refuse(seat);
  seat.feed(LinkUp{seat.link_});
  StartRound start = seat.round(1);
  start.succession = {0, true, false, false};
  seat.hear(start);
  CHECK(seat.membership_.coordinator() == "b:29400");
  CHECK(seat.done<Note>());
  seat.feed(LinkDown{seat.link_, "it closed the connection"});
  CHECK(seat.done<Connect>()->to == kSecond);  // at once
  refuse(seat);
  CHECK(seat.done<Connect>()->to == kFirst);
  refuse(seat);
  CHECK(seat.done<Connect>()->to == kThird);
  seat.feed(LinkUp{seat.link_});
  CHECK(seat.said<Hello>()->claim->stamp.number == Round(1));
  CHECK(!seat.done<Coordinate>());
  CHECK(!seat.done<StopGroup>());
}

TEST_CASE("an endpoint that closes the connection has no majority: the next one is asked") {
  Seat seat = in_round(1);
  seat.feed(LinkDown{seat.link_, "it closed the connection"});
  refuse(seat);
  CHECK(seat.done<Connect>()->to == kSecond);
  seat.feed(LinkUp{seat.link_});
  seat.hear(Beat{});
  CHECK(!seat.membership_.has_coordinator());
  seat.forget();
  seat.feed(LinkDown{seat.link_, "it closed the connection"});
  seat.after(seconds(1));
  REQUIRE(seat.done<Connect>());
  CHECK(seat.done<Connect>()->to == kFirst);
}

TEST_CASE("a node without a round looks now and then whether the first endpoint answers by now") {
  Seat seat = at_second();
  seat.feed(client::Tick{});
  seat.forget();
  for (int i = 0; i < 4; ++i) {
    seat.after(seconds(1));
    seat.hear(Beat{});
  }
  CHECK(!seat.done<Connect>());
  seat.after(seconds(1));
  REQUIRE(seat.done<Connect>());
  CHECK(seat.said<Reconnecting>());
  CHECK(seat.done<Connect>()->to == kFirst);
  SECTION("it does not: the node is back, which is worth no line") {
    seat.forget();
    refuse(seat);
    CHECK(seat.done<Connect>()->to == kSecond);
    seat.feed(LinkUp{seat.link_});
    seat.hear(Waiting{1, 2, 3, Round(0), milliseconds(0), ""});
    CHECK(seat.membership_.has_coordinator());
    CHECK(!seat.done<Note>());
    seat.forget();
    for (int i = 0; i < 9; ++i) {
      seat.after(seconds(1));
      seat.hear(Beat{});
    }
    CHECK(!seat.done<Connect>());  // twice as long now
  }
  SECTION("it does: the node stays there") {
    seat.feed(LinkUp{seat.link_});
    seat.hear(Waiting{2, 2, 3, Round(0), milliseconds(0), ""});
    CHECK(seat.membership_.coordinator() == "a:29400");
    seat.forget();
    seat.after(seconds(1));
    seat.hear(Beat{});
    CHECK(!seat.done<Connect>());
  }
}

TEST_CASE("a node that knows of a round stays where that is") {
  Seat seat = at_second();
  seat.hear(Waiting{4, 2, 3, Round(5), milliseconds(0), "the run has its maximum"});
  seat.forget();
  for (int i = 0; i < 30; ++i) {
    seat.after(seconds(1));
    seat.hear(Beat{});
  }
  CHECK(!seat.done<Connect>());
}

TEST_CASE("a coordinator sends an agent to an endpoint that it was given, and to no other place") {
  Seat seat = in_round(1);
  seat.hear(Moved{"10.9.9.9", 29400});
  CHECK(!seat.done<Connect>());
  seat.hear(Moved{"b", 29400});
  seat.after(seconds(1));
  REQUIRE(seat.done<Connect>());
  CHECK(seat.done<Connect>()->to == kSecond);
  CHECK(!seat.done<StopGroup>());
}

TEST_CASE("rank 0 speaks for the coordinator of a settled round while that answers") {
  CHECK(!in_round(1).membership_.speaks_for());
  Seat seat = in_round(0, false);
  CHECK(!seat.membership_.speaks_for());
  seat.hear(Settled{{Round(1), "c1"}});
  const auto led = seat.membership_.speaks_for();
  REQUIRE(led);
  CHECK(led->round == Round(1));
  CHECK(led->place == kFirst);
  seat.feed(LinkDown{seat.link_, "it closed the connection"});
  CHECK(!seat.membership_.speaks_for());
}

TEST_CASE("a refusal of a node that has not joined ends it, at whichever endpoint") {
  Seat seat = at_start();
  refuse(seat);
  seat.feed(LinkUp{seat.link_});
  seat.hear(Refused{RefusalCode::kTermsDiffer, "a has one --rdzv-endpoint", {}});
  REQUIRE(seat.done<End>());
  CHECK(seat.done<End>()->exit_code == kExitRefused);
}
