#include "trainer/checkpoint/checkpoint_policy.hpp"

#include <cmath>
#include <random>

#include "tests/support/catch.hpp"

using namespace ddprun::trainer;
using namespace std::chrono_literals;

namespace {

using Time = CheckpointPolicy::Time;
using Duration = CheckpointPolicy::Duration;

constexpr Time kStart{1h};
constexpr CheckpointRule kOnePercent{.budget = 0.01};

}  // namespace

TEST_CASE("a checkpoint is due a fixed time after the one before it") {
  CheckpointPolicy policy({30s, {}}, kStart);
  CHECK_FALSE(policy.due(kStart));
  CHECK_FALSE(policy.due(kStart + 30s - 1ns));
  CHECK(policy.due(kStart + 30s));
  policy.saved(kStart + 40s);
  CHECK_FALSE(policy.due(kStart + 69s));
  CHECK(policy.due(kStart + 70s));
}

TEST_CASE("what a checkpoint costs does not change a fixed time") {
  CheckpointPolicy policy({30s, {}}, kStart);
  policy.saved(kStart);
  policy.pay(kStart, 1h);
  CHECK(policy.due(kStart + 30s));
}

TEST_CASE("without a time and a budget no checkpoint is due") {
  const CheckpointPolicy policy({0ms, {}}, kStart);
  CHECK_FALSE(policy.due(kStart + 1000h));
}

TEST_CASE("with a budget the first checkpoint is due at once, the next when that one is paid") {
  CheckpointPolicy policy(kOnePercent, kStart);
  CHECK(policy.due(kStart));
  policy.saved(kStart + 5s);
  policy.pay(kStart + 5s, 20ms);
  CHECK_FALSE(policy.due(kStart + 5s + 2s - 1ms));
  CHECK(policy.due(kStart + 5s + 2s));
}

TEST_CASE("with a budget the processor time of a checkpoint is paid beside its copy") {
  CheckpointPolicy policy(kOnePercent, kStart);
  policy.pay(kStart, 20ms);
  policy.pay(kStart, 30ms);
  CHECK_FALSE(policy.due(kStart + 5s - 1ms));
  CHECK(policy.due(kStart + 5s));
}

TEST_CASE("time without a checkpoint is no credit for several") {
  CheckpointPolicy policy(kOnePercent, kStart);
  policy.pay(kStart + 1h, 20ms);  // the one before was written for an hour
  CHECK_FALSE(policy.due(kStart + 1h + 1s));
  CHECK(policy.due(kStart + 1h + 2s));
}

TEST_CASE("a budget of 100 percent makes checkpoints follow each other") {
  CheckpointPolicy policy({.budget = 1.0}, kStart);
  policy.pay(kStart, 20ms);
  CHECK_FALSE(policy.due(kStart + 20ms - 1ns));
  CHECK(policy.due(kStart + 20ms));
}

TEST_CASE("all checkpoints but the latest stay within the budget, whatever each costs") {
  std::mt19937 random(7);
  for (const double budget : {0.0001, 0.01, 0.3, 1.0}) {
    CheckpointPolicy policy({.budget = budget}, kStart);
    Duration spent{};
    auto now = kStart;
    for (int saved = 0; saved < 1000;) {
      now += std::chrono::milliseconds(random() % 1000);  // a step
      const bool epoch_ends = random() % 50 == 0;         // one that is written in any case
      if (!policy.due(now) && !epoch_ends) continue;
      const std::chrono::duration<double> share = (now - kStart) * budget;
      if (!epoch_ends) REQUIRE(spent <= share + 1ms);
      const Duration cost = std::chrono::microseconds(random() % (saved % 7 == 0 ? 1000 : 90'000));
      policy.pay(now, cost);
      spent += cost;
      now += cost;
      ++saved;
    }
  }
}
