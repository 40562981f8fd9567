// A fresh store on a fixed port, while nodes may still have workers of the round before.
#include "rendezvous/coordinator/store_door.hpp"

#include <arpa/inet.h>

#include "rendezvous/store/server_peers.hpp"
#include "tests/coordinator/live.hpp"
#include "tests/store/requests.hpp"

using namespace ddprun;
using namespace ddprun::coordinator;
using protocol::NodeState;
using round::LeftOnNode;
namespace requests = ddprun::store::requests;

namespace {

protocol::Hello at(const std::string& name, const std::string& address) {
  auto hello = hello_of("run", name, 2);
  hello.addresses = {address};
  hello.terms.max_restarts = 1;
  return hello;
}

/// Two nodes in round 1, which then fails; both have heard of round 2.
struct Failed {
  Failed()
      : here(coordinator.port(), at("a", "127.0.0.1")),
        there(coordinator.port(), at("b", "127.0.0.1")) {
    const auto first = here.start_round();
    there.start_round();
    here.report(first, NodeState::kFailed);
    second = here.await<protocol::StartRound>();
    CHECK(second.stamp.number == Round(2));
    CHECK(there.await<protocol::StartRound>().stamp.number == Round(2));
    coordinator.on_thread([](auto& server) { server->begin_fresh_store(Round(1), [] {}); });
  }

  LiveCoordinator coordinator;
  Agent here;
  Agent there;
  protocol::StartRound second;
};

bool is_welcome(LiveCoordinator& coordinator, store::Peers& peers, const char* address) {
  sockaddr_storage from{};
  auto& v4 = reinterpret_cast<sockaddr_in&>(from);
  v4.sin_family = AF_INET;
  REQUIRE(::inet_pton(AF_INET, address, &v4.sin_addr) == 1);
  bool welcome = false;
  coordinator.on_thread([&](auto&) {
    const net::Connection connection(1, -1, from);
    welcome = peers.check(connection) == store::Peers::Verdict::kWelcome;
  });
  return welcome;
}

}  // namespace

TEST_CASE("the store of a fixed port admits the nodes of a round, and no spare one") {
  const auto peers = std::make_shared<store::Peers>(store::Peers::Options{});
  ServerOptions options;
  options.peers = peers;
  LiveCoordinator coordinator(std::move(options));
  Agent first(coordinator.port(), at("a", "10.9.0.1"));
  first.await<protocol::Waiting>();
  CHECK_FALSE(is_welcome(coordinator, *peers, "10.9.0.1"));
  auto second = std::make_unique<Agent>(coordinator.port(), at("b", "10.9.0.2"));
  Agent spare(coordinator.port(), at("c", "10.9.0.3"));
  spare.await<protocol::Waiting>();
  first.start_round();
  second->start_round();
  CHECK(is_welcome(coordinator, *peers, "10.9.0.1"));
  CHECK(is_welcome(coordinator, *peers, "10.9.0.2"));
  CHECK_FALSE(is_welcome(coordinator, *peers, "10.9.0.3"));
  second.reset();
  spare.start_round();
  CHECK(is_welcome(coordinator, *peers, "10.9.0.3"));
}

TEST_CASE("a client is let in when every node with its address has no worker left") {
  StoreGate gate;
  CHECK(gate.is_open());
  gate.begin(Round(1), {{AgentId("a"), "a", {"10.0.0.1", "172.17.0.1"}, true},
                        {AgentId("b"), "b", {"10.0.0.2", "172.17.0.1"}, false}});
  CHECK(gate.awaited() == "a");
  CHECK(gate.of("10.0.0.1") == StoreGate::Answer::kIsLate);
  CHECK(gate.of("10.0.0.2") == StoreGate::Answer::kWelcome);
  CHECK(gate.of("172.17.0.1") == StoreGate::Answer::kWaits);
  CHECK(gate.of("10.0.0.3") == StoreGate::Answer::kWaits);
  const round::Run no_agents(round::RunOptions{RunId("run"), "author"});
  CHECK(gate.look(no_agents));  // a node that has left the run
  CHECK(gate.is_open());
  CHECK(gate.of("10.0.0.1") == StoreGate::Answer::kWelcome);
}

TEST_CASE("a worker that ends late gets no key of the next round") {
  Failed run;
  const auto connect = [&run](const std::string& request) {
    auto client = std::make_unique<Client>(run.coordinator.port());
    client->send(requests::validate() + request);
    return client;
  };
  auto late = connect(requests::set("k", "late"));
  SECTION("it has gone when its nodes have no worker left") {
    late.reset();
    run.there.say(protocol::Stopped{Round(1)});
    run.here.say(protocol::Stopped{Round(1)});
    CHECK(connect(requests::get("k"))->receive(8) == requests::text(""));
  }
  SECTION("one of the next round waits for both nodes that have its address") {
    late.reset();
    auto next = connect(requests::add("n", 1));
    run.there.say(protocol::Stopped{Round(1)});
    run.there.say(protocol::Beat{});
    run.there.await<protocol::Beat>();
    CHECK(next->silent());
    run.here.report(run.second, NodeState::kRunning);
    CHECK(next->receive(8) == requests::i64(1));
  }
  SECTION("it finds a closed port, and does not wait for ever") {
    CHECK(late->closed());
  }
}

TEST_CASE("a node that was given no round keeps no client waiting, whatever it claims") {
  LiveCoordinator coordinator;
  Agent here(coordinator.port(), at("a", "127.0.0.1"));
  Agent there(coordinator.port(), at("b", "127.0.0.1"));
  const auto first = here.start_round();
  there.start_round();
  auto claims = at("c", "127.0.0.1");
  auto& claim = claims.claim.emplace();
  claim.stamp = {first.stamp.number, "another"};
  claim.group_size = 2;
  claim.state = NodeState::kStarting;
  Agent spare(coordinator.port(), claims);
  spare.await<protocol::Stop>();  // which it does not answer
  here.report(first, NodeState::kFailed);
  const auto second = here.await<protocol::StartRound>();
  there.await<protocol::StartRound>();
  coordinator.on_thread([](auto& server) { server->begin_fresh_store(Round(1), [] {}); });
  here.report(second, NodeState::kRunning);
  there.report(second, NodeState::kRunning);
  CHECK(store::connect(coordinator.port()).ask(requests::get("k"), 8) == requests::text(""));
}
