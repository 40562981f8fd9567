// Whose connections are served when one address makes more work than there is time for.
#include "rendezvous/store/turns.hpp"

#include <vector>

#include "tests/support/catch.hpp"

using namespace ddprun;
using namespace ddprun::store;
using std::chrono::seconds;

namespace {

/// Each connection costs this much; which were served in one turn.
std::vector<Turns::Id> turn(Turns& turns, Duration cost) {
  std::vector<Turns::Id> served;
  const Turns::Share share = turns.next();
  while (const auto id = turns.take(share)) {
    served.push_back(*id);
    turns.spent(share, cost);
  }
  return served;
}

}  // namespace

TEST_CASE("an address that has used up its time waits, others do not") {
  Turns turns;
  turns.tick(TimePoint(seconds(1)));
  turns.spent(1, kShareMax / 2);
  CHECK_FALSE(turns.has_used_up(1));
  turns.spent(1, kShareMax / 2);
  CHECK(turns.has_used_up(1));
  CHECK_FALSE(turns.has_used_up(2));
  turns.tick(TimePoint(seconds(1)) + kWindow - Duration(1));
  CHECK(turns.has_used_up(1));
  turns.tick(TimePoint(seconds(1)) + kWindow);
  CHECK_FALSE(turns.has_used_up(1));
  CHECK(turns.empty());
}

TEST_CASE("addresses take turns, however many connections one has, and a turn has an end") {
  Turns turns;
  for (Turns::Id id = 0; id < 100; ++id) turns.wait(1, id);
  turns.wait(2, 1000);
  turns.tick(TimePoint(seconds(1)));
  CHECK(turns.has_used_up(1));  // as long as one of its connections waits
  CHECK(turn(turns, kShareTurn) == std::vector<Turns::Id>{0});
  CHECK(turn(turns, kShareTurn) == std::vector<Turns::Id>{1000});
  CHECK(turn(turns, kShareTurn / 3 + Duration(1)) == std::vector<Turns::Id>{1, 2, 3});
  turns.wait(1, 0);  // it has more to do: behind its others
  CHECK(turn(turns, Duration(0)).back() == 0);
  while (!turns.empty()) CHECK(turn(turns, Duration(0)).empty());
  turns.tick(TimePoint(seconds(2)));
  CHECK_FALSE(turns.has_used_up(1));
  CHECK_FALSE(turns.has_used_up(2));
}
