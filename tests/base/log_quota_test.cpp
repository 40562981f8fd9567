#include "base/log_quota.hpp"

#include "tests/support/catch.hpp"

using namespace ddprun;
using std::chrono::seconds;

TEST_CASE("log lines of a run are omitted beyond a burst, counted, and logged again in time") {
  LogQuota quota(3, seconds(1));
  TimePoint now{seconds(100)};
  for (int line = 0; line < 3; ++line) CHECK(quota.try_take(now));
  CHECK_FALSE(quota.try_take(now));
  CHECK_FALSE(quota.try_take(now));
  now += seconds(1);
  CHECK(quota.try_take(now));
  CHECK(quota.take_omitted() == 2);
  CHECK(quota.take_omitted() == 0);
  CHECK_FALSE(quota.try_take(now));
  now += seconds(60);
  for (int line = 0; line < 3; ++line) CHECK(quota.try_take(now));
}
