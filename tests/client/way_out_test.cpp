// How a node leaves its run.
#include "rendezvous/client/membership/states.hpp"
#include "tests/support/catch.hpp"

using namespace ddprun;
using namespace ddprun::client;

TEST_CASE("a node that stays, leaves, and has its end decided by the coordinator") {
  WayOut way_out;
  CHECK(std::string(way_out.name()) == "Staying");
  way_out.leave(End{143, "SIGTERM received"});
  CHECK(way_out.is_leaving());
  CHECK(way_out.end().exit_code == 143);
  const TimePoint until{std::chrono::seconds(5)};
  way_out.wait_until(until);
  CHECK(way_out.until() == until);
  way_out.decide(End{7, "rank 1 failed"});
  CHECK_FALSE(way_out.until());
  CHECK(way_out.is_decided());
  CHECK_FALSE(way_out.has_ended());
  CHECK(way_out.finish().exit_code == 7);
  CHECK(way_out.is_decided());
  CHECK(way_out.has_ended());
}

TEST_CASE("the second request hurries, in whatever state it comes") {
  WayOut way_out;
  way_out.ask();
  CHECK_FALSE(way_out.hurries());
  SECTION("leaving") {
    way_out.leave(End{143, "SIGTERM received"});
  }
  SECTION("decided") {
    way_out.decide(End{0, "done"});
  }
  way_out.ask();
  CHECK(way_out.hurries());
}
