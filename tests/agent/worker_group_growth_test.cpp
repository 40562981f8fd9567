// A group whose workers are carried into a round that grows: --restart=failed.
#include "agent/core/worker_group.hpp"

#include "tests/agent/group_driver.hpp"

using namespace ddprun;
using namespace ddprun::test;

namespace {

const auto kBySigkill = ExitStatus::signaled(SIGKILL);

/// All three were carried.
WorkerGroup::Options grows() {
  WorkerGroup::Options options{3, 30s, 10s, 60s, {local(0), local(1), local(2)}};
  options.grows = true;
  return options;
}

}  // namespace

TEST_CASE("a round grows: one that fails before it has joined has failed, the others are held") {
  Group group(grows());
  SECTION("before it starts") {
    CHECK(group(exited(1, kBySigkill)) == "1 failed first, disarm, log that 1 failed");
  }
  SECTION("while ranks are told") {
    group(Start{});
    group(Spawned{local(0)});
    CHECK(group(exited(1, kBySigkill)) == "1 failed first, disarm, log that 1 failed");
  }
  SECTION("when all are told") {
    group(Start{});
    for (int rank = 0; rank < 3; ++rank) group(Spawned{local(rank)});
    group(Joined{local(0)});
    CHECK(group(exited(1, kBySigkill)) == "1 failed first, disarm, log that 1 failed");
  }
  CHECK(group.state() == GroupState::kHolding);
  CHECK(group.group.held() == std::vector{local(0), local(2)});
}

TEST_CASE("a round grows: one that ends with 0 before it has joined is started again") {
  Group group(grows());
  group(Start{});
  for (int rank = 0; rank < 3; ++rank) group(Spawned{local(rank)});
  CHECK(group(exited(1, kOk)) == "log that 1 starts again, spawn 1");
}
