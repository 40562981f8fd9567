// What one agent, or one address, may take of a coordinator: the others have the rest.
#include <algorithm>
#include <atomic>
#include <thread>

#include "rendezvous/coordinator/links.hpp"
#include "tests/coordinator/live.hpp"
#include "tests/support/sentences.hpp"

using namespace ddprun;
using namespace ddprun::coordinator;
using namespace ddprun::test;
using namespace std::chrono_literals;

namespace {

using std::chrono::microseconds;

ServerOptions with_runs(std::size_t runs) {
  ServerOptions options;
  options.limits.runs = runs;
  return options;
}

std::string status_of(LiveCoordinator& coordinator) {
  std::string status;
  coordinator.on_thread([&](auto& server) { status = server->status_json(); });
  return status;
}

/// An agent that sends the same bytes without end, and reads.
class Flood {
 public:
  Flood(std::uint16_t port, const std::string& bytes)
      : agent_(port, hello_of("flood", "f", 1)),
        writes_([this, bytes] {
          while (!enough_ && agent_.socket().send_all(bytes)) {
          }
        }),
        reads_([this] {
          while (!enough_ && !agent_.socket().receive(65536, 1000).empty()) {
          }
        }) {}
  ~Flood() {
    enough_ = true;
    ::shutdown(agent_.socket().fd(), SHUT_RDWR);
    writes_.join();
    reads_.join();
  }

 private:
  Agent agent_;
  std::atomic<bool> enough_ = false;
  std::thread writes_;
  std::thread reads_;
};

/// The median of the times that a SET takes, and the PING that shows that it has been executed.
microseconds set_time(std::uint16_t port) {
  namespace requests = store::requests;
  Client client(port);
  client.send(requests::validate());
  std::vector<microseconds> times;
  for (int count = 0; count < 300; ++count) {
    const auto begin = std::chrono::steady_clock::now();
    client.ask(requests::set("key", "value") + requests::ping(7), 4);
    times.push_back(
        std::chrono::duration_cast<microseconds>(std::chrono::steady_clock::now() - begin));
    std::this_thread::yield();
  }
  const auto middle = times.begin() + 150;
  std::nth_element(times.begin(), middle, times.end());
  return *middle;
}

}  // namespace

TEST_CASE("an agent may say what it has to at once, and is read at a bounded rate after that") {
  LinkBudget budget;
  TimePoint now{std::chrono::hours(1)};
  budget.spend(250, 1000, 1000, now);
  CHECK(budget.read_at() <= now);
  budget.spend(500, 1000, 1000, now);
  CHECK(budget.read_at() == now + 500ms);
  now += 750ms;
  budget.spend(1, 256 * 1024, 1000, now);
  CHECK(budget.read_at() == now);
  budget.spend(1, 1024 * 1024, 1000, now);
  CHECK(budget.read_at() == now + 1s);
}

TEST_CASE("a flood of messages of one agent costs the others little") {
  std::string beats;
  for (int count = 0; count < 1000; ++count) {
    beats += protocol::frame(protocol::encode(protocol::Beat{}));
  }
  std::string fields = R"({"type":"beat")";
  for (int field = 0; field < 16'000; ++field) fields += ",\"x" + std::to_string(field) + "\":0";
  for (const std::string& bytes : {beats, protocol::frame(fields + "}")}) {
    bool little = false;
    for (int attempt = 0; attempt < 5 && !little; ++attempt) {
      LiveCoordinator coordinator;
      LiveCoordinator other;
      std::vector<microseconds> times;
      for (LiveCoordinator* flooded : {&other, &coordinator}) {  // the same load on the machine
        const Flood flood(flooded->port(), bytes);
        set_time(coordinator.port());  // what the agent may say at once is over
        times.push_back(set_time(coordinator.port()));
      }
      CAPTURE(times.front().count(), times.back().count());
      little = times.back() < 2 * times.front();
    }
    CHECK(little);
  }
}

TEST_CASE("an agent that is read more slowly loses nothing that it says") {
  LiveCoordinator coordinator;
  Agent agent(coordinator.port(), hello_of("run", "a", 1));
  const auto round = agent.start_round();
  std::string beats;
  for (int count = 0; count < 600; ++count) {
    beats += protocol::frame(protocol::encode(protocol::Beat{}));
  }
  agent.socket().send(beats);
  agent.report(round, protocol::NodeState::kSucceeded);
  CHECK(agent.await<protocol::Done>().exit_code == 0);
}

TEST_CASE("the status is shown to whom --status names") {
  using Access = StatusAccess;
  CHECK(may_ask(Access::kLocal, "127.0.0.1", "127.0.0.1"));
  CHECK(may_ask(Access::kLocal, "10.0.0.1", "10.0.0.1"));
  CHECK_FALSE(may_ask(Access::kLocal, "10.0.0.2", "10.0.0.1"));
  CHECK(may_ask(Access::kAll, "10.0.0.2", "10.0.0.1"));
  CHECK_FALSE(may_ask(Access::kOff, "127.0.0.1", "127.0.0.1"));
  CHECK(ServerOptions().status == Access::kLocal);
  for (const Access access : {Access::kOff, Access::kLocal}) {
    ServerOptions options;
    options.status = access;
    LiveCoordinator coordinator(options);
    Client reader(coordinator.port());
    reader.send("GET /status.json HTTP/1.1\r\n\r\n");
    const std::string expected = access == Access::kOff ? "HTTP/1.1 403 " : "HTTP/1.1 200 ";
    CHECK(reader.receive(1024 * 1024).starts_with(expected));
  }
}

TEST_CASE("one address has three quarters of the runs at most") {
  LiveCoordinator coordinator(with_runs(4));
  std::vector<std::unique_ptr<Agent>> agents;
  for (const std::string run : {"one", "two", "three"}) {
    agents.push_back(std::make_unique<Agent>(coordinator.port(), hello_of(run, "a", 2)));
    agents.back()->await<protocol::Waiting>();
  }
  Agent fourth(coordinator.port(), hello_of("four", "a", 2));
  const auto refused = fourth.await<protocol::Refused>();
  CHECK(refused.code == protocol::RefusalCode::kRunFull);
  CHECK_THAT(refused.sentence,
             ContainsSubstring("127.0.0.1 has begun 3 runs") && ContainsSubstring("--max-runs"));
  Agent member(coordinator.port(), hello_of("one", "b", 2));
  member.start_round();
  agents.back().reset();
  CHECK(eventually([&] {
    Agent another(coordinator.port(), hello_of("four", "a", 1));
    return std::holds_alternative<protocol::StartRound>(another.next());
  }));
}

TEST_CASE("a late agent hears its verdict, however many runs its address has begun since") {
  LiveCoordinator coordinator(with_runs(4));
  {
    Agent agent(coordinator.port(), hello_of("over", "a", 1));
    agent.report(agent.start_round(), protocol::NodeState::kSucceeded);
    CHECK(agent.await<protocol::Done>().exit_code == 0);
  }
  std::vector<std::unique_ptr<Agent>> agents;
  for (const std::string run : {"one", "two", "three"}) {
    agents.push_back(std::make_unique<Agent>(coordinator.port(), hello_of(run, "a", 2)));
    agents.back()->await<protocol::Waiting>();
  }
  auto late = hello_of("over", "b", 1);
  late.age = std::chrono::minutes(5);
  Agent came_late(coordinator.port(), late);
  CHECK(came_late.await<protocol::Done>().exit_code == 0);
  Agent again(coordinator.port(), hello_of("over", "c", 1));
  CHECK(again.await<protocol::Refused>().code == protocol::RefusalCode::kRunFull);
}

TEST_CASE("a run whose agents have left before its first round is forgotten at once") {
  LiveCoordinator coordinator;
  {
    Agent agent(coordinator.port(), hello_of("short", "a", 2));
    agent.await<protocol::Waiting>();
    CHECK(status_of(coordinator).find("\"short\"") != std::string::npos);
  }
  CHECK(eventually([&] { return status_of(coordinator).find("\"short\"") == std::string::npos; }));
  Agent one(coordinator.port(), hello_of("short", "a", 1));
  one.start_round();
}
