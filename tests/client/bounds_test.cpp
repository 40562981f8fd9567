// A coordinator that keeps the link alive and never does its part: what ends each wait for it.
#include "rendezvous/protocol/limits.hpp"
#include "tests/client/seat.hpp"

using namespace ddprun;
using namespace ddprun::client;

namespace {

/// Heartbeats arrive for this long; the link is made again whenever the agent gave it up.
void beats_for(Seat& seat, Duration time) {
  for (const TimePoint end = seat.now_ + time; seat.now_ < end;) {
    seat.after(seconds(1));
    if (!seat.membership_.connected()) seat.feed(LinkUp{seat.link_});
    seat.hear(Beat{});
  }
}

}  // namespace

TEST_CASE("heartbeats are no answer to the first hello: after join_timeout the agent gives up") {
  Seat seat;
  seat.connect();
  beats_for(seat, seconds(599));
  CHECK_FALSE(seat.membership_.ended());
  beats_for(seat, seconds(1));
  REQUIRE(seat.done<End>().has_value());
  CHECK(seat.done<End>()->exit_code == kExitJoinTimeout);
  CHECK(seat.done<End>()->text.find("(--rdzv-conf join_timeout=600)") != std::string::npos);
}

TEST_CASE("a coordinator that answers nothing after the first time is given up after its timeout") {
  Seat seat;
  seat.connect();
  seat.hear(seat.round(1));
  for (int second = 0; second < 64; ++second) {
    seat.after(seconds(1));
    if (!seat.membership_.connected()) seat.feed(LinkUp{seat.link_});  // accepted, then silence
  }
  CHECK_FALSE(seat.membership_.ended());
  seat.after(seconds(1));
  CHECK(seat.done<StopGroup>().has_value());
  seat.feed(GroupGone{Round(1)});
  REQUIRE(seat.done<End>().has_value());
  CHECK(seat.done<End>()->text.find("coordinator_timeout") != std::string::npos);
}

TEST_CASE("a request to leave that is never answered ends when the stop of all must be over") {
  Seat seat;
  seat.connect();
  seat.hear(seat.round(1));
  seat.feed(LeaveAsked{143, "SIGTERM received"});
  SECTION("with workers that end first") {
    beats_for(seat, seconds(20));
    seat.feed(GroupGone{Round(1)});
  }
  SECTION("without workers") {
    seat = Seat();
    seat.connect();
    seat.hear(Waiting{1, 2, 2, Round(0), milliseconds(0), "waits"});
    seat.feed(LeaveAsked{143, "SIGTERM received"});
  }
  beats_for(seat, Hello().stop_timeout + kStopMargin + kLeaveMargin - seconds(1));
  CHECK_FALSE(seat.membership_.ended());
  beats_for(seat, seconds(1));
  REQUIRE(seat.done<End>().has_value());
  CHECK(seat.done<End>()->exit_code == 143);
}
