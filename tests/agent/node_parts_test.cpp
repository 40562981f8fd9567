// The parts of an agent of several nodes that decide or convert: messages of the link, the store of
// a round.
#include <signal.h>

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <memory>

#include "agent/coordinate/link_messages.hpp"
#include "agent/coordinate/node_store.hpp"
#include "tests/coordinator/live.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/free_port.hpp"

using namespace ddprun;
using namespace std::chrono_literals;

namespace asio = boost::asio;

namespace {

LaunchConfig config() {
  LaunchConfig one;
  one.run_id = RunId("7f3a");
  one.workers.role = "trainer";
  one.workers.count = 4;
  one.stopping.max_restarts = 3;
  one.stopping.shutdown_timeout = 45s;
  one.store.master_addr = "gpu-01";
  one.store.master_port = 29500;
  one.store.listen_addr = "127.0.0.1";
  one.rendezvous.emplace();
  one.rendezvous->coordinator = {"gpu-01", 29400};
  one.rendezvous->nodes_min = 2;
  one.rendezvous->nodes_max = 4;
  return one;
}

LaunchConfig fixed_config() {
  LaunchConfig one = config();
  one.rendezvous->master = MasterChoice::kFixed;
  return one;
}

protocol::StartRound second_round() {
  protocol::StartRound round;
  round.stamp = {Round(2), "c1"};
  round.group_rank = 1;
  round.group_size = 3;
  round.rank_base = Rank(8);
  round.world_size = WorldSize(14);
  round.role_rank_base = 2;
  round.role_world_size = 6;
  round.master_address = "10.0.4.11";
  round.master_port = 41207;
  round.restarts = RestartCount(1);
  return round;
}

bool connects(asio::io_context& io, std::uint16_t port) {
  asio::ip::tcp::socket socket(io);
  boost::system::error_code why;
  socket.connect({asio::ip::address_v4::loopback(), port}, why);
  return !why;
}

}  // namespace

TEST_CASE("the hello says what the command line said") {
  LaunchConfig what = config();
  what.rendezvous->node_rank = 3;
  what.rendezvous->scheduler_index = 7;
  what.rendezvous->address = "10.0.4.13";
  what.rendezvous->keep_alive_interval = 250ms;
  using At = AgentIdentity::Coordinator;
  const auto options =
      membership_options(what, {AgentId("0123"), "gpu-03", At::kElsewhere, {"10.0.4.13"}});
  CHECK(options.coordinator == "gpu-01:29400");
  const protocol::Hello& hello = options.hello;
  CHECK(hello.run_id == RunId("7f3a"));
  CHECK(hello.agent == AgentId("0123"));
  CHECK(hello.host == "gpu-03");
  CHECK(hello.address == "10.0.4.13");
  CHECK(hello.local_world_size == 4);
  CHECK(hello.role == "trainer");
  CHECK(hello.terms.nodes_min == 2);
  CHECK(hello.terms.nodes_max == 4);
  CHECK(hello.terms.max_restarts == 3);
  CHECK(hello.terms.silence_max() == 1250ms);
  CHECK(hello.node_rank == 3);
  CHECK(hello.scheduler_index == 7);
  CHECK(hello.stop_timeout == 45s);
  CHECK_FALSE(hello.runs_coordinator);
  CHECK(hello.addresses == std::vector<std::string>{"10.0.4.13"});
  what.rendezvous->address.clear();
  CHECK(membership_options(what, AgentIdentity{AgentId("1"), "h"}).hello.address.empty());
  CHECK(membership_options(what, {AgentId("1"), "h", At::kHere}).hello.runs_coordinator);
}

TEST_CASE("an IPv6 coordinator is written with brackets") {
  CHECK(to_text(CoordinatorAddress{"fd00::1", 29400}) == "[fd00::1]:29400");
}

TEST_CASE("a round becomes the facts of this node's workers, with the round's own master") {
  const RoundFacts facts = facts_of(second_round(), config());
  CHECK(facts.round == Round(2));
  CHECK(facts.restarts == RestartCount(1));
  CHECK(facts.world == WorldSize(14));
  CHECK(facts.groups == 3);
  CHECK(facts.group_rank == 1);
  CHECK(facts.first_rank == Rank(8));
  CHECK(facts.role_world == WorldSize(6));
  CHECK(facts.first_role_rank == 2);
  CHECK(facts.master_addr == "10.0.4.11");
  CHECK(facts.master_port == 41207);
}

TEST_CASE("with a fixed master every round has the address and port that were given") {
  const RoundFacts facts = facts_of(second_round(), fixed_config());
  CHECK(facts.master_addr == "gpu-01");
  CHECK(facts.master_port == 29500);
}

TEST_CASE("the next round's listener is open before the round, and the old store closes") {
  asio::io_context io;
  const LaunchConfig what = config();
  NodeStore store(io.get_executor(), what, nullptr, nullptr);
  const auto first = store.open_next();
  REQUIRE(first.has_value());
  CHECK(connects(io, *first));
  REQUIRE(store.serve(Round(1), {}).has_value());
  const auto second = store.open_next();
  REQUIRE(second.has_value());
  CHECK(*second != *first);
  CHECK(connects(io, *first));
  int idle = 0;
  {
    asio::ip::tcp::socket client(io);
    client.connect({asio::ip::address_v4::loopback(), *first});
    io.poll();
    store.release(Round(1), [&idle] { ++idle; });
    REQUIRE(store.serve(Round(2), {}).has_value());
    io.poll();
    CHECK(idle == 0);
  }
  CHECK(connects(io, *first));
  const TimePoint hung = Clock::now() + std::chrono::seconds(20);
  while (idle == 0 && Clock::now() < hung) io.run_one_until(hung);
  CHECK(idle == 1);
  store.close(Round(1));
  CHECK_FALSE(connects(io, *first));
  CHECK(connects(io, *second));
}

TEST_CASE("the store of a round that has to give up its port becomes idle") {
  asio::io_context io;
  LaunchConfig what = config();
  what.rendezvous.reset();
  what.store.master_port = test::free_port();
  NodeStore store(io.get_executor(), what, nullptr, nullptr);
  REQUIRE(store.open_next().has_value());
  REQUIRE(store.serve(Round(1), {}).has_value());
  asio::ip::tcp::socket client(io);
  client.connect({asio::ip::address_v4::loopback(), what.store.master_port});
  io.poll();
  REQUIRE(store.open_next().has_value());
  int idle = 0;
  store.release(Round(1), [&idle] { ++idle; });
  REQUIRE(store.serve(Round(2), {}).has_value());
  io.restart();
  io.poll();
  CHECK(idle == 0);
  REQUIRE(store.begin().has_value());
  io.restart();
  io.poll();
  CHECK(idle == 1);
  store.close(Round(1));
  CHECK(store.served_at() == "127.0.0.1:" + std::to_string(what.store.master_port));
}

TEST_CASE("where rank 0 serves itself, its port is free when the round begins") {
  asio::io_context io;
  LaunchConfig what = config();
  what.store.host = StoreHost::kWorkerZero;
  NodeStore store(io.get_executor(), what, nullptr, nullptr);
  const auto port = store.open_next();
  REQUIRE(port.has_value());
  CHECK(connects(io, *port));
  REQUIRE(store.serve(Round(1), {}).has_value());
  CHECK_FALSE(connects(io, *port));
  int idle = 0;
  store.release(Round(1), [&idle] { ++idle; });
  io.poll();
  CHECK(idle == 1);
}

TEST_CASE("a fixed master's store is emptied between rounds, and not before the first") {
  namespace requests = store::requests;
  const LaunchConfig what = fixed_config();
  asio::io_context io;
  std::unique_ptr<NodeStore> store;
  coordinator::LiveCoordinator coordinator;
  const auto set_k = [&coordinator] {
    store::connect(coordinator.port()).send(requests::set("k", "1"));
  };
  // Each value has its length before it.
  const auto k = [&coordinator] {
    store::Client client = store::connect(coordinator.port());
    const bool is_there = client.ask(requests::check({"k"}), 1) == std::string(1, '\0');
    return is_there;
  };
  const auto on_thread = [&](auto work) {
    coordinator.on_thread([&](auto& server) {
      if (!store)
        store = std::make_unique<NodeStore>(io.get_executor(), what, server.get(), nullptr);
      work();
    });
  };
  set_k();
  CHECK(store::eventually(k));
  on_thread([&] {
    CHECK(store->open_next().value() == 29500);
    CHECK(store->serve(Round(1), {}).has_value());
  });
  CHECK(k());
  std::atomic<int> idle = 0;
  on_thread([&] {
    store->release(Round(1), [&idle] { ++idle; });  // as the next round does, before it serves
    store->close(Round(1));
    CHECK(store->serve(Round(2), {}).has_value());
  });
  CHECK(!k());
  set_k();
  CHECK(store::eventually(k));
  on_thread([&] { store->release(Round(2), [&idle] { ++idle; }); });
  CHECK(!k());
  CHECK(store::eventually([&idle] { return idle == 1; }));
}
