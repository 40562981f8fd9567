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

TEST_CASE("a coordinator that may not act answers heartbeats, and decides nothing until it may") {
  Lease lease;
  LiveCoordinator coordinator(lease.options());
  Agent first(coordinator.port(), elastic_hello("a"));
  Agent second(coordinator.port(), elastic_hello("b"));
  const auto round = first.start_round();
  second.start_round();
  CHECK(eventually([&] { return lease.last().round == 1; }));
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
  lease.record(coordinator);
  CHECK(first.await<protocol::Done>().exit_code == 0);
  CHECK(second.await<protocol::Done>().exit_code == 0);
}

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

TEST_CASE("a run whose ranks have all finished does not wait for ever for what keeps its record") {
  Lease lease;
  ServerOptions options = lease.options();
  options.keeper = "etcd h1:2379";
  const bool stopped = GENERATE(false, true);
  CAPTURE(stopped);
  options.keeper_timeout = stopped ? Duration(std::chrono::hours(1)) : milliseconds(50);
  LiveCoordinator coordinator(options);
  Agent first(coordinator.port(), elastic_hello("a"));
  Agent second(coordinator.port(), elastic_hello("b"));
  const auto round = first.start_round();
  second.start_round();
  CHECK(eventually([&] { return lease.last().round == 1; }));
  lease.holds = false;
  first.report(round, NodeState::kSucceeded);
  if (stopped) first.say(protocol::Leave{143, "SIGTERM received", round.stamp.number, true});
  CHECK(hears_no_verdict(first));  // a rank trains still
  CHECK(hears_no_verdict(second));
  second.report(round, NodeState::kSucceeded);
  const std::string expected =
      stopped ? "; etcd h1:2379 does not answer" : "; etcd h1:2379 has not answered for 50 ms";
  for (Agent* agent : {&first, &second}) {
    const auto done = agent->await<protocol::Done>();
    CHECK(done.exit_code == 0);
    CHECK_THAT(done.text, ContainsSubstring("exited with code 0"));
    CHECK_THAT(done.text, ContainsSubstring(expected));
  }
}

TEST_CASE("a verdict that cannot be recorded is heard at last") {
  Lease lease;
  ServerOptions options = lease.options();
  options.keeper = "etcd h1:2379";
  options.keeper_timeout = milliseconds(50);
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

TEST_CASE("a coordinator begins with the record of the one before") {
  Lease lease;
  ServerOptions options = lease.options();
  options.record = RunRecord{41, 0};
  LiveCoordinator coordinator(options);
  Agent first(coordinator.port(), elastic_hello("a"));
  Agent second(coordinator.port(), elastic_hello("b"));
  CHECK(first.start_round().stamp.number == Round(42));
  CHECK(eventually([&] { return lease.last().round == 42; }));
}
