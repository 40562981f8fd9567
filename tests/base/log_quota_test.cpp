#include "base/quota.hpp"

#include "tests/support/catch.hpp"

using namespace ddprun;
using std::chrono::seconds;

TEST_CASE("many lines of one kind leave the other kinds theirs, and kinds without number share") {
  LogQuotas quotas(3, seconds(60), 2);
  const TimePoint now{seconds(100)};
  const auto taken = [&](const std::string& kind) {
    int lines = 0;
    for (int time = 0; time < 10; ++time) lines += quotas.of(kind).try_take(now) ? 1 : 0;
    return lines;
  };
  CHECK(taken("a") == 3);
  CHECK(taken("b") == 3);
  CHECK(taken("c") + taken("d") + taken("e") == 3);
  CHECK(quotas.of("a").take_omitted() == 7);
}

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
