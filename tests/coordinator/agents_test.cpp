// Agents over real sockets: rounds, runs, their end.
#include <vector>

#include "tests/coordinator/live.hpp"
#include "tests/support/sentences.hpp"

using namespace ddprun;
using namespace ddprun::coordinator;
using protocol::NodeState;

TEST_CASE("nodes that go down together cost the others one round") {
  LiveCoordinator coordinator;
  std::vector<std::unique_ptr<Agent>> agents;
  for (char name = 'a'; name <= 'h'; ++name) {
    auto hello = hello_of("run", {name}, 8);
    hello.terms.nodes_min = 1;
    agents.push_back(std::make_unique<Agent>(coordinator.port(), hello));
  }
  for (const auto& agent : agents) agent->start_round();
  for (const auto& agent : agents) {
    agent->say(protocol::Beat{});
    agent->await<protocol::Beat>();
  }
  coordinator.on_thread([&agents](auto&) { agents.erase(agents.begin(), agents.begin() + 5); });
  for (const auto& agent : agents) {
    const auto round = agent->await<protocol::StartRound>();
    CHECK(round.stamp.number == Round(2));
    CHECK(round.group_size == 3);
    CHECK_THAT(round.reason, ContainsSubstring("3 nodes remain"));
  }
}

TEST_CASE("the end of a run does not wait for an agent that was lost by silence") {
  ServerOptions options;
  options.limits.idle_timeout = std::chrono::hours(1);
  LiveCoordinator coordinator(options);
  // Its connection stays open until the end of the test.
  Agent silent(coordinator.port(), soon_lost_hello("a"));
  auto other = std::make_unique<Agent>(coordinator.port(), soon_lost_hello("b"));
  other->start_round();
  std::optional<protocol::StartRound> alone;
  while (!alone) {
    other->say(protocol::Beat{});
    const protocol::Message message = other->next();
    if (const auto* next = std::get_if<protocol::StartRound>(&message)) alone = *next;
  }
  auto settled = coordinator.settled();
  other->report(*alone, protocol::NodeState::kSucceeded);
  CHECK(other->await<protocol::Done>().exit_code == 0);
  other.reset();
  CHECK(is_ready(settled));
}

TEST_CASE("an agent of another run is refused with both names where one run is served") {
  ServerOptions options;
  options.only_run = RunId("mine");
  LiveCoordinator coordinator(options);
  Agent stranger(coordinator.port(), hello_of("theirs", "a", 1));
  const auto refused = stranger.await<protocol::Refused>();
  CHECK(refused.code == protocol::RefusalCode::kWrongRun);
  CHECK_THAT(refused.sentence, ContainsSubstring("run mine") && ContainsSubstring("run theirs") &&
                                   ContainsSubstring("--rdzv-id"));
  CHECK(stranger.closed());
  Agent welcome(coordinator.port(), hello_of("mine", "a", 1));
  welcome.start_round();
}

TEST_CASE("a shutdown sends every run its verdict, and settles when the agents have disconnected") {
  LiveCoordinator coordinator;
  auto idle = coordinator.settled();
  CHECK(is_ready(idle));
  auto waits = std::make_unique<Agent>(coordinator.port(), hello_of("waits", "a", 2));
  waits->await<protocol::Waiting>();
  auto works = std::make_unique<Agent>(coordinator.port(), hello_of("works", "a", 1));
  const auto round = works->start_round();
  auto settled = coordinator.settled();
  coordinator.on_thread([](auto& server) { server->shut_down(143, "received SIGTERM"); });
  CHECK(waits->await<protocol::Done>().text == "received SIGTERM");
  CHECK(works->await<protocol::Stop>().reason == "received SIGTERM");
  works->say(protocol::Stopped{round.stamp.number, protocol::Milliseconds(1), 0, 0});
  CHECK(works->await<protocol::Done>().exit_code == 143);
  CHECK(settled.wait_for(std::chrono::seconds(0)) == std::future_status::timeout);
  waits.reset();
  works.reset();
  CHECK(is_ready(settled));
  Agent late(coordinator.port(), hello_of("third", "a", 1));
  CHECK_FALSE(late.try_next().has_value());
}

TEST_CASE("strangers that are refused again and again do not keep a finished server waiting") {
  ServerOptions options;
  options.limits.idle_timeout = std::chrono::milliseconds(500);
  LiveCoordinator coordinator(options);
  {
    Agent agent(coordinator.port(), hello_of("run", "a", 1));
    agent.report(agent.start_round(), NodeState::kSucceeded);
    agent.await<protocol::Done>();
  }
  std::vector<std::unique_ptr<Agent>> strangers;
  const auto refuse_another = [&] {
    const std::string beat = protocol::frame(protocol::encode(protocol::Beat{}));
    strangers.push_back(std::make_unique<Agent>(coordinator.port(), beat));
    strangers.back()->await<protocol::Refused>();  // and does not close its connection
  };
  refuse_another();
  auto settled = coordinator.settled();
  constexpr std::size_t kTenTimeouts = 50;
  while (settled.wait_for(std::chrono::milliseconds(100)) != std::future_status::ready &&
         strangers.size() < kTenTimeouts) {
    refuse_another();
  }
  CHECK(strangers.size() < kTenTimeouts);
}

TEST_CASE("close() completes settle() and closes every connection") {
  LiveCoordinator coordinator;
  Agent agent(coordinator.port(), hello_of("run", "a", 2));
  agent.await<protocol::Waiting>();
  auto settled = coordinator.settled();
  coordinator.close();
  CHECK(is_ready(settled));
  CHECK(agent.closed());
}

TEST_CASE("another command is never late for a finished run, and waits for none of its nodes") {
  LiveCoordinator coordinator;
  const auto running = [](const std::string& name, const std::string& command) {
    auto hello = elastic_hello(name);
    hello.terms.last_call_timeout = protocol::Milliseconds(0);
    hello.fingerprint = hello.command = command;
    return hello;
  };
  {
    Agent agent(coordinator.port(), running("a", "train.py"));
    agent.report(agent.start_round(), NodeState::kSucceeded);
    CHECK(agent.await<protocol::Done>().exit_code == 0);
  }
  auto late = running("b", "eval.py");
  late.age = std::chrono::minutes(5);
  Agent before_the_end(coordinator.port(), late);
  CHECK_THAT(before_the_end.await<protocol::Refused>().sentence,
             ContainsSubstring("b" + test::kOtherCommand) && !ContainsSubstring("train.py"));
  CHECK(eventually([&] {
    return coordinator.log().find("runs `train.py`, b runs `eval.py`") != std::string::npos;
  }));
  Agent after_the_end(coordinator.port(), running("c", "eval.py"));
  CHECK(after_the_end.start_round().stamp.number == Round(1));
}
