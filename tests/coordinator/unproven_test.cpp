// Handshakes: whose turn it is, and who goes where there are too many.
#include "rendezvous/coordinator/arrivals.hpp"

#include "tests/support/catch.hpp"

using namespace ddprun;
using namespace ddprun::coordinator;
using std::chrono::milliseconds;

TEST_CASE("who comes from one place crowds out itself, however many others have") {
  Unproven unproven;
  unproven.add(1, "honest");
  for (std::uint64_t id = 2; id <= 100; ++id) unproven.add(id, "flood");
  for (std::uint64_t id = 2; id <= 99; ++id) {
    CHECK(unproven.loser() == id);
    unproven.remove(unproven.loser());
  }
  CHECK(unproven.size() == 2);
}

TEST_CASE("handshakes have their turns one network after the other") {
  Unproven unproven;
  const TimePoint now{milliseconds(1000)};
  for (std::uint64_t id = 1; id <= 100; ++id) {
    unproven.add(id, "flood");
    unproven.want_turn(id);
  }
  CHECK(unproven.next_turn(now) == 1);
  unproven.add(200, "honest");
  unproven.want_turn(200);
  CHECK(unproven.next_turn(now) == 200);
  CHECK(unproven.next_turn(now) == 2);
  unproven.remove(3);
  CHECK(unproven.next_turn(now) == 4);
  CHECK(unproven.waiting() == 96);
}

TEST_CASE("handshakes get half of the time, also if each costs a signature of a long key") {
  Unproven unproven;
  TimePoint now{milliseconds(1000)};
  CHECK_FALSE(unproven.next_at());
  for (std::uint64_t id = 1; id <= 300; ++id) {
    unproven.add(id, std::to_string(id));
    unproven.want_turn(id);
  }
  int turns = 0;
  const TimePoint end = now + milliseconds(1000);
  while (now < end) {
    REQUIRE(unproven.next_turn(now));
    ++turns;
    now += milliseconds(5);
    unproven.spent(milliseconds(5), now);
    CHECK_FALSE(unproven.next_turn(now));
    now = *unproven.next_at();
  }
  CHECK(turns == 100);
}
