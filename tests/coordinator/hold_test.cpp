// A coordinator that may not act, because another one may.
#include <atomic>

#include "tests/coordinator/live.hpp"

using namespace ddprun;
using namespace ddprun::coordinator;
using protocol::NodeState;
using std::chrono::milliseconds;

namespace {

struct Lease {
  std::atomic<bool> holds{true};
  std::mutex mutex;
  std::vector<RunRecord> records;

  ServerOptions options() {
    ServerOptions options;
    options.only_run = RunId("run");
    options.seat.may_act = [this] { return holds.load(); };
    options.seat.on_record = [this](const RunRecord& record) {
      const std::lock_guard lock(mutex);
      records.push_back(record);
    };
    return options;
  }
  RunRecord last() {
    const std::lock_guard lock(mutex);
    return records.empty() ? RunRecord{} : records.back();
  }
  /// The last record is kept.
  void record(LiveCoordinator& coordinator) {
    REQUIRE(eventually([&] { return last().over.has_value(); }));
    coordinator.on_thread([this](auto& server) { server->recorded(last()); });
  }
};

/// Its heartbeats are answered, and nothing else is said.
bool hears_no_verdict(Agent& agent) {
  for (int i = 0; i < 3; ++i) {
    agent.say(protocol::Beat{});
    while (true) {
      const protocol::Message message = agent.next();
      if (std::holds_alternative<protocol::Done>(message)) return false;
      if (std::holds_alternative<protocol::Beat>(message)) break;
    }
  }
  return true;
}

/// Both stop as they are told to: what two links say in a row may arrive in any order.
void fail_round(const protocol::StartRound& round, Agent& failed, Agent& other) {
  failed.report(round, NodeState::kFailed);
  for (Agent* agent : {&failed, &other}) {
    agent->say(protocol::Stopped{agent->await<protocol::Stop>().round});
  }
}

}  // namespace

TEST_CASE("the agents hear a verdict only when it is recorded") {
  Lease lease;
  LiveCoordinator coordinator(lease.options());
  Agent first(coordinator.port(), elastic_hello("a"));
  Agent second(coordinator.port(), elastic_hello("b"));
  const auto round = first.start_round();
  second.start_round();
  fail_round(round, first, second);
  CHECK(eventually([&] { return lease.last().over.has_value(); }));
  CHECK(hears_no_verdict(first));
  CHECK(hears_no_verdict(second));
  coordinator.on_thread([](auto& server) { server->recorded(RunRecord{1, 0}); });  // an older one
  CHECK(hears_no_verdict(first));
  lease.record(coordinator);
  CHECK(first.await<protocol::Done>().exit_code == 7);
  CHECK(second.await<protocol::Done>().exit_code == 7);
}

TEST_CASE("a verdict that cannot be recorded is heard at last") {
  Lease lease;
  ServerOptions options = lease.options();
  options.seat.keeper = "etcd h1:2379";
  options.seat.keeper_timeout = milliseconds(50);
  LiveCoordinator coordinator(options);
  Agent first(coordinator.port(), elastic_hello("a"));
  Agent second(coordinator.port(), elastic_hello("b"));
  const auto round = first.start_round();
  second.start_round();
  fail_round(round, first, second);
  const auto done = first.await<protocol::Done>();
  CHECK(done.exit_code == 7);
  CHECK_THAT(done.text, ContainsSubstring("etcd h1:2379 has not answered for 50 ms"));
  CHECK(second.await<protocol::Done>().exit_code == 7);
}

TEST_CASE("a coordinator that may not act takes no first agent") {
  Lease lease;
  lease.holds = false;
  LiveCoordinator coordinator(lease.options());
  Agent first(coordinator.port(), elastic_hello("a"));
  CHECK(!first.try_next());
}
