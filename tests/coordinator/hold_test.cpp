// A coordinator that may not act, because another one may.
#include <atomic>

#include "tests/coordinator/live.hpp"

using namespace ddprun;
using namespace ddprun::coordinator;
using protocol::NodeState;

namespace {

struct Lease {
  std::atomic<bool> holds{true};
  std::mutex mutex;
  std::vector<RunRecord> records;

  ServerOptions options() {
    ServerOptions options;
    options.only_run = RunId("run");
    options.may_act = [this] { return holds.load(); };
    options.on_record = [this](const RunRecord& record) {
      const std::lock_guard lock(mutex);
      records.push_back(record);
    };
    return options;
  }
  RunRecord last() {
    const std::lock_guard lock(mutex);
    return records.empty() ? RunRecord{} : records.back();
  }
};

}  // namespace

TEST_CASE("a coordinator that may not act answers heartbeats, and decides nothing until it may") {
  Lease lease;
  LiveCoordinator coordinator(lease.options());
  Agent first(coordinator.port(), elastic_hello("a"));
  Agent second(coordinator.port(), elastic_hello("b"));
  const auto round = first.start_round();
  second.start_round();
  CHECK(eventually([&] { return lease.last() == RunRecord{1, 0}; }));
  lease.holds = false;
  {
    Agent third(coordinator.port(), elastic_hello("c"));
    first.report(round, NodeState::kSucceeded);
    second.report(round, NodeState::kSucceeded);
    for (int i = 0; i < 3; ++i) {
      first.say(protocol::Beat{});
      CHECK(std::holds_alternative<protocol::Beat>(first.next()));
      second.say(protocol::Beat{});
      CHECK(std::holds_alternative<protocol::Beat>(second.next()));
    }
  }
  CHECK(!lease.last().over);
  lease.holds = true;
  coordinator.on_thread([](auto& server) { server->resume(); });
  CHECK(first.await<protocol::Done>().exit_code == 0);
  CHECK(second.await<protocol::Done>().exit_code == 0);
  CHECK(eventually([&] { return lease.last().over.has_value(); }));
}

TEST_CASE("a coordinator that may not act takes no first agent") {
  Lease lease;
  lease.holds = false;
  LiveCoordinator coordinator(lease.options());
  Agent first(coordinator.port(), elastic_hello("a"));
  CHECK(!first.try_next());
}

TEST_CASE("a coordinator begins with the record of the one before") {
  Lease lease;
  ServerOptions options = lease.options();
  options.record = RunRecord{41, 0};
  LiveCoordinator coordinator(options);
  Agent first(coordinator.port(), elastic_hello("a"));
  Agent second(coordinator.port(), elastic_hello("b"));
  CHECK(first.start_round().stamp.number == Round(42));
  CHECK(eventually([&] { return lease.last() == RunRecord{42, 0}; }));
}
