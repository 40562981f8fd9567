// Random lives of elections: see election_world.hpp. DDPRUN_TEST_SEED is the first seed.
#include <cstdlib>

#include "tests/etcd/election_world.hpp"
#include "tests/support/catch.hpp"

using namespace ddprun;
using namespace ddprun::etcd;
using std::chrono::seconds;

namespace {

constexpr unsigned kLives = 1000;

unsigned first_seed() {
  const char* given = std::getenv("DDPRUN_TEST_SEED");
  return given == nullptr ? 1 : static_cast<unsigned>(std::strtoul(given, nullptr, 10));
}

}  // namespace

TEST_CASE(
    "whatever is delayed, lost, repeated, cut off, asleep or down, one process acts at most") {
  int leaders = 0;
  int verdicts = 0;
  int barred = 0;
  for (unsigned seed = first_seed(); seed < first_seed() + kLives; ++seed) {
    CAPTURE(seed);
    ElectionWorld world(seed, 2 + static_cast<int>(seed % 4));
    world.run(seconds(60), true);
    world.heal();
    world.run(seconds(40), false);
    REQUIRE(world.broken() == "");
    CHECK(world.acting() == 1);
    CHECK(world.all_agree());
    leaders += world.leaders();
    verdicts += world.verdicts();
    barred += world.barred();
  }
  CHECK(leaders > 2 * static_cast<int>(kLives));  // they do change
  CHECK(verdicts > static_cast<int>(kLives));
  CHECK(barred > static_cast<int>(kLives) / 20);
}
