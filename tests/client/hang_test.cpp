// Ranks of this node that make no progress: the coordinator is told, and asks.
#include "tests/client/seat.hpp"

using namespace ddprun;
using namespace ddprun::client;

namespace {

const GroupQuiet kQuiet{Round(1), seconds(10), 4};

}  // namespace

TEST_CASE("a node whose ranks run says how long they have been quiet") {
  Seat seat = Seat::in_round_one();
  seat.feed(kQuiet);
  CHECK(seat.said<Quiet>() == Quiet{Round(1), seconds(10), 4});
}

TEST_CASE("ranks of another round, that have ended, or without a coordinator are not told") {
  SECTION("another round") {
    Seat seat = Seat::in_round_one();
    seat.feed(GroupQuiet{Round(2), seconds(10), {}});
    CHECK_FALSE(seat.said<Quiet>().has_value());
  }
  SECTION("ended") {
    Seat seat = Seat::in_round_one();
    seat.feed(GroupSucceeded{Round(1)});
    seat.feed(kQuiet);
    CHECK_FALSE(seat.said<Quiet>().has_value());
  }
  SECTION("no coordinator") {
    Seat seat = Seat::in_round_one();
    seat.feed(LinkDown{seat.link_, "reset"});
    seat.feed(kQuiet);
    CHECK_FALSE(seat.said<Quiet>().has_value());
  }
}

TEST_CASE("the coordinator's question and its order reach the ranks of their round alone") {
  Seat seat = Seat::in_round_one();
  seat.hear(Hang{Round(1), 7});
  REQUIRE(seat.done<CheckHang>().has_value());
  CHECK(seat.done<CheckHang>()->echo == 7);
  seat.hear(Hang{Round(1)});
  CHECK_FALSE(seat.done<CheckHang>()->echo.has_value());
  seat.forget();
  seat.hear(Hang{Round(2)});
  seat.feed(GroupFailed{Round(1), {}});
  seat.hear(Hang{Round(1)});
  CHECK_FALSE(seat.done<CheckHang>().has_value());
  CHECK(seat.membership_.stale() == 2);
}
