#include "agent/node/spare_pool.hpp"

#include "tests/support/catch.hpp"

using namespace ddprun;
using namespace std::chrono_literals;

namespace {

using Pace = SparePool::Pace;
using Ended = SparePool::Ended;
const TimePoint kNow = TimePoint() + 1h;

/// One that waits.
int waiting_spare(SparePool& pool, TimePoint now = kNow) {
  const auto spare = pool.start(now);
  REQUIRE(spare);
  pool.waits(*spare);
  return *spare;
}

}  // namespace

TEST_CASE("spare pool: none is started before one is wanted, nor while a round begins") {
  SparePool pool;
  CHECK_FALSE(pool.start(kNow));
  pool.want(2, Pace::kOneByOne);
  pool.pause();
  CHECK_FALSE(pool.start(kNow));
  CHECK_FALSE(pool.had_any());
}

TEST_CASE("spare pool: the next one is started when the one before waits") {
  SparePool pool;
  pool.want(2, Pace::kOneByOne);
  const auto first = pool.start(kNow);
  REQUIRE(first);
  CHECK_FALSE(pool.start(kNow));
  CHECK_FALSE(pool.due());
  pool.waits(*first);
  CHECK(pool.start(kNow));
  CHECK_FALSE(pool.start(kNow));
}

TEST_CASE("spare pool: a node that waits starts all at once, and gives up what is too many") {
  SparePool pool;
  pool.want(3, Pace::kAtOnce);
  for (int i = 0; i < 3; ++i) CHECK(pool.start(kNow));
  CHECK_FALSE(pool.start(kNow));
  CHECK(pool.surplus().empty());
  pool.want(1, Pace::kOneByOne);
  CHECK(pool.surplus().size() == 2);
  CHECK(pool.surplus().empty());
}

TEST_CASE("spare pool: only one that waits gets a place, the oldest first, and is replaced") {
  SparePool pool;
  pool.want(2, Pace::kAtOnce);
  const auto loading = pool.start(kNow);
  REQUIRE(loading);
  CHECK_FALSE(pool.take());
  const int waits = waiting_spare(pool);
  CHECK(pool.is_waiting(waits));
  CHECK(pool.take() == waits);
  CHECK_FALSE(pool.take());
  CHECK(pool.start(kNow));
}

TEST_CASE("spare pool: after one that did not come to wait none is started") {
  SparePool pool;
  pool.want(2, Pace::kOneByOne);
  const int waits = waiting_spare(pool);
  const auto loading = pool.start(kNow);
  REQUIRE(loading);
  CHECK(pool.ended(*loading, kNow) == Ended::kBeforeItWaited);
  CHECK_FALSE(pool.start(kNow + 24h));
  CHECK(pool.take() == waits);
  CHECK(pool.ended(waits, kNow) == Ended::kUnknown);
}

TEST_CASE("spare pool: those that end while they wait are replaced ever more slowly") {
  SparePool pool;
  pool.want(1, Pace::kOneByOne);
  TimePoint now = kNow;
  for (const Duration pause : {1s, 2s, 4s, 8s, 16s, 32s, 60s, 60s}) {
    CHECK(pool.ended(waiting_spare(pool, now), now) == Ended::kWhileItWaited);
    CHECK_FALSE(pool.start(now + pause - 1ms));
    CHECK(pool.due() == now + pause);
    now += pause;
  }
  waiting_spare(pool, now);
  CHECK(pool.take());
  CHECK(pool.ended(waiting_spare(pool, now), now) == Ended::kWhileItWaited);
  CHECK(pool.due() == now + 1s);
}
