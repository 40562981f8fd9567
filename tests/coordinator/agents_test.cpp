// Agents over real sockets: rounds, runs, their end.
#include <vector>

#include "tests/coordinator/live.hpp"
#include "tests/support/sentences.hpp"

using namespace ddprun;
using namespace ddprun::coordinator;
using protocol::NodeState;

TEST_CASE("two agents join, get a round, succeed and receive the verdict") {
  LiveCoordinator coordinator;
  Agent first(coordinator.port(), hello_of("run", "a", 2));
  const auto waiting = first.await<protocol::Waiting>();
  CHECK(waiting.here == 1);
  CHECK(waiting.nodes_min == 2);
  Agent second(coordinator.port(), hello_of("run", "b", 2));
  const auto round_a = first.start_round();
  const auto round_b = second.start_round();
  CHECK(round_a.stamp == round_b.stamp);
  CHECK(round_a.group_rank == 0);
  CHECK(round_b.rank_base == Rank(2));
  CHECK(round_b.world_size == WorldSize(4));
  CHECK(round_b.master_address == "127.0.0.1");
  CHECK(round_b.master_port == 4000);
  first.report(round_a, NodeState::kSucceeded);
  second.report(round_b, NodeState::kSucceeded);
  CHECK(first.await<protocol::Done>().exit_code == 0);
  CHECK(second.await<protocol::Done>().exit_code == 0);
}

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

TEST_CASE("a lost connection is a new round for the others, and uses no restart") {
  LiveCoordinator coordinator;
  Agent first(coordinator.port(), elastic_hello("a"));
  auto second = std::make_unique<Agent>(coordinator.port(), elastic_hello("b"));
  CHECK(first.start_round().world_size == WorldSize(4));
  second->start_round();
  second.reset();
  const auto next = first.start_round();
  CHECK(next.stamp.number == Round(2));
  CHECK(next.world_size == WorldSize(2));
  CHECK(next.restarts == RestartCount(0));
  CHECK_THAT(next.reason, ContainsSubstring("lost b") && ContainsSubstring("connection closed"));
  CHECK_THAT(coordinator.log(), ContainsSubstring("lost b") && ContainsSubstring("run_id=run"));
}

TEST_CASE("a failure restarts all nodes while restarts are left, otherwise ends them") {
  LiveCoordinator coordinator;
  std::vector<std::unique_ptr<Agent>> agents;
  for (const char* name : {"a", "b"}) {
    auto hello = hello_of("run", name, 2);
    hello.terms.max_restarts = 1;
    agents.push_back(std::make_unique<Agent>(coordinator.port(), hello));
  }
  agents[0]->start_round();
  agents[1]->report(agents[1]->start_round(), NodeState::kFailed);
  const auto second_round = agents[0]->start_round();
  CHECK(second_round.restarts == RestartCount(1));
  CHECK(second_round.master_port == 4001);
  agents[1]->report(agents[1]->start_round(), NodeState::kFailed);
  for (const auto& agent : agents) {
    const auto stop = agent->await<protocol::Stop>();
    agent->say(protocol::Stopped{stop.round, protocol::Milliseconds(1), 0, 0});
  }
  for (const auto& agent : agents) {
    const auto done = agent->await<protocol::Done>();
    CHECK(done.exit_code == 7);
    REQUIRE(done.failure.has_value());
    CHECK(done.failure->first.worker.host == "b");
  }
}

TEST_CASE("a silent agent is lost although its connection is open") {
  LiveCoordinator coordinator;
  Agent beating(coordinator.port(), soon_lost_hello("a"));
  Agent silent(coordinator.port(), soon_lost_hello("b"));
  beating.start_round();
  silent.start_round();
  while (true) {
    beating.say(protocol::Beat{});
    const protocol::Message message = beating.next();
    const auto* next = std::get_if<protocol::StartRound>(&message);
    if (next == nullptr) continue;
    CHECK_THAT(next->reason,
               ContainsSubstring("lost b") && ContainsSubstring("no heartbeat for 2 s"));
    break;
  }
  CHECK(silent.closed());
}

TEST_CASE("a coordinator that was paused loses no agent whose heartbeats wait in the socket") {
  LiveCoordinator coordinator;
  auto hello = hello_of("run", "a", 1);
  hello.terms.keep_alive_interval = protocol::Milliseconds(1000);
  hello.terms.keep_alive_max_attempt = 2;
  Agent agent(coordinator.port(), hello);
  const auto round = agent.start_round();
  std::promise<void> never;
  coordinator.on_thread([&](auto&) {
    agent.say(protocol::Beat{});
    never.get_future().wait_for(std::chrono::milliseconds(2500));  // blocks the server
  });
  agent.report(round, NodeState::kSucceeded);
  CHECK(agent.await<protocol::Done>().exit_code == 0);
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

TEST_CASE("runs with different names are independent") {
  LiveCoordinator coordinator;
  Agent red(coordinator.port(), hello_of("red", "a", 2));
  Agent blue(coordinator.port(), hello_of("blue", "a", 1));
  const auto round = blue.start_round();
  CHECK(round.world_size == WorldSize(2));
  CHECK(red.await<protocol::Waiting>().here == 1);
  Agent more(coordinator.port(), hello_of("red", "b", 2));
  const auto other = red.start_round();
  CHECK(other.world_size == WorldSize(4));
  CHECK(other.stamp.author != round.stamp.author);
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

TEST_CASE("a finished run answers late agents, and one that started later starts a new run") {
  LiveCoordinator coordinator;
  {
    Agent agent(coordinator.port(), hello_of("run", "a", 1));
    agent.report(agent.start_round(), NodeState::kSucceeded);
    CHECK(agent.await<protocol::Done>().exit_code == 0);
  }
  auto late = hello_of("run", "b", 1);
  late.age = std::chrono::minutes(5);
  Agent came_late(coordinator.port(), late);
  CHECK(came_late.await<protocol::Done>().exit_code == 0);
  CHECK(came_late.closed());
  Agent again(coordinator.port(), hello_of("run", "c", 1));
  CHECK(again.start_round().stamp.number == Round(1));
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

TEST_CASE("an agent that reconnects after a lost link continues its round") {
  LiveCoordinator coordinator;
  const auto hello = hello_of("run", "a", 1);
  auto before = std::make_unique<Agent>(coordinator.port(), hello);
  const auto round = before->start_round();
  auto back = hello;
  back.seen = round.stamp.number;
  back.claim = protocol::Claim{round.stamp, 0, 1, RestartCount(0), NodeState::kRunning};
  Agent after(coordinator.port(), back);
  CHECK(before->closed());
  after.report(round, NodeState::kSucceeded);
  CHECK(after.await<protocol::Done>().exit_code == 0);
}
