#include "agent/output/write_times.hpp"

#include "tests/support/catch.hpp"

using namespace ddprun;
using namespace std::chrono_literals;

namespace {
constexpr TimePoint kStart{100s};
}  // namespace

TEST_CASE("what a stream was given at one moment lasted no time") {
  WriteTimes times;
  times.add(kStart + 5s, 100);
  times.add(kStart + 5s, 20);
  const WriteTimes::Later later = times.since(kStart);
  CHECK(later.bytes == 120);
  CHECK(later.time == 0s);
}

TEST_CASE("what a stream was given over seconds is told with its time, and nothing before that") {
  WriteTimes times;
  for (int step = 0; step < 10; ++step) times.add(kStart + step * 400ms, 10);
  const WriteTimes::Later all = times.since(kStart - 1s);
  CHECK(all.bytes == 100);
  CHECK(all.time == 3600ms);
  const WriteTimes::Later later = times.since(kStart + 2s);
  CHECK(later.bytes < 50);
  CHECK(later.time > 1s);
  CHECK(times.since(kStart + 4s).bytes == 0);
  times.clear();
  CHECK(times.since(kStart - 1s).bytes == 0);
}

TEST_CASE("the memory of write times is bounded") {
  WriteTimes times;
  for (int step = 0; step < 10'000; ++step) times.add(kStart + step * 1s, 1);
  CHECK(times.since(kStart).bytes == 64);
}
