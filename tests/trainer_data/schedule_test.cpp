#include "trainer/schedule/schedule.hpp"

#include <cmath>

#include "tests/support/catch.hpp"

using namespace ddprun::trainer;

namespace {

ScheduleOptions of_kind(ScheduleKind kind) {
  ScheduleOptions options;
  options.kind = kind;
  options.base = 0.2;
  options.warmup_fraction = 0;
  return options;
}

}  // namespace

TEST_CASE("warm-up and decay are linear and do not reach zero before the end") {
  ScheduleOptions options = of_kind(ScheduleKind::kWarmupLinear);
  options.warmup_fraction = 0.2;
  CHECK(learning_rate(options, {0, 100}) == Approx(0.01));
  CHECK(learning_rate(options, {9, 100}) == Approx(0.1));
  CHECK(learning_rate(options, {19, 100}) == Approx(0.2));
  CHECK(learning_rate(options, {20, 100}) == Approx(0.2));
  CHECK(learning_rate(options, {60, 100}) == Approx(0.1));
  CHECK(learning_rate(options, {99, 100}) == Approx(0.0025));
  CHECK(learning_rate(options, {100, 100}) == 0.0);
}

TEST_CASE("multi-step multiplies at each milestone, from that step on") {
  ScheduleOptions options = of_kind(ScheduleKind::kMultiStep);
  options.milestones = {30, 60};
  CHECK(learning_rate(options, {29, 90}) == Approx(0.2));
  CHECK(learning_rate(options, {30, 90}) == Approx(0.02));
  CHECK(learning_rate(options, {59, 90}) == Approx(0.02));
  CHECK(learning_rate(options, {60, 90}) == Approx(0.002));
}

TEST_CASE("cosine decays from base to minimum along half a period") {
  ScheduleOptions options = of_kind(ScheduleKind::kCosine);
  options.minimum = 0.02;
  CHECK(learning_rate(options, {0, 200}) == Approx(0.2));
  CHECK(learning_rate(options, {100, 200}) == Approx(0.11));
  CHECK(learning_rate(options, {50, 200}) == Approx(0.11 + 0.09 * std::sqrt(0.5)));
  CHECK(learning_rate(options, {200, 200}) == Approx(0.02));
}

TEST_CASE("one-cycle starts at base / 25, peaks at the end of its warm-up, ends near zero") {
  ScheduleOptions options = of_kind(ScheduleKind::kOneCycle);
  options.warmup_fraction = 0.3;
  CHECK(learning_rate(options, {0, 100}) == Approx(0.008));
  CHECK(learning_rate(options, {29, 100}) == Approx(0.2));
  CHECK(learning_rate(options, {64, 100}) == Approx(0.1000004));
  CHECK(learning_rate(options, {99, 100}) == Approx(0.0000008));
}

TEST_CASE("constant does not change after its warm-up") {
  ScheduleOptions options = of_kind(ScheduleKind::kConstant);
  CHECK(learning_rate(options, {0, 10}) == Approx(0.2));
  CHECK(learning_rate(options, {9, 10}) == Approx(0.2));
  options.warmup_fraction = 0.4;
  CHECK(learning_rate(options, {0, 10}) == Approx(0.05));
  CHECK(learning_rate(options, {4, 10}) == Approx(0.2));
}

TEST_CASE("every schedule gives a usable rate for every length, even the shortest") {
  for (const ScheduleKind kind : schedule_kinds()) {
    for (const double warmup : {0.0, 0.2, 0.3, 0.999, 1.0}) {
      ScheduleOptions options = of_kind(kind);
      options.warmup_fraction = warmup;
      for (std::uint64_t total = 0; total < 20; ++total) {
        for (std::uint64_t step = 0; step < total + 3; ++step) {
          const double rate = learning_rate(options, {step, total});
          CAPTURE(schedule_name(kind), warmup, total, step);
          REQUIRE(rate >= 0.0);
          REQUIRE(rate <= 0.2 * (1 + 1e-12));
          if (step < total) REQUIRE((rate > 0.0 || kind == ScheduleKind::kCosine));
        }
      }
    }
  }
}
