// One port, three protocols: clients of the store and of HTTP beside agents.
#include <boost/json/parse.hpp>
#include <filesystem>
#include <iterator>
#include <vector>

#include "tests/coordinator/live.hpp"

using namespace ddprun;
using namespace ddprun::coordinator;
namespace requests = ddprun::store::requests;

namespace {

std::string get(std::uint16_t port, const std::string& path, const std::string& more = {}) {
  Client client(port);
  client.send("GET " + path + " HTTP/1.1\r\nHost: localhost\r\n" + more + "\r\n");
  return client.receive(1 << 22);
}

boost::json::value status_of(std::uint16_t port) {
  const std::string text = get(port, "/status");
  const auto body = text.find("\r\n\r\n");
  REQUIRE(body != std::string::npos);
  return boost::json::parse(text.substr(body + 4));
}

/// Of the process that holds the coordinator and its clients.
std::ptrdiff_t descriptors() {
  namespace fs = std::filesystem;
  return std::distance(fs::directory_iterator("/proc/self/fd"), fs::directory_iterator());
}

}  // namespace

TEST_CASE("a c10d client on the agents' port is served, byte by byte or all at once") {
  LiveCoordinator coordinator;
  Client pieces(coordinator.port());
  const std::string talk = requests::validate() + requests::ping(1) + requests::set("k", "v");
  for (const char one : talk) pieces.send({&one, 1});
  CHECK(pieces.receive(4) == requests::u32(1));
  Client client(coordinator.port());
  CHECK(client.ask(talk + requests::get("k"), 13) == requests::u32(1) + requests::text("v"));
  Client waiter = store::connect(coordinator.port());
  waiter.send(requests::wait({"late"}));
  store::connect(coordinator.port()).send(requests::set("late", ""));
  CHECK(waiter.receive(1) == requests::hex("00"));
}

TEST_CASE("agents of torchrun are sent away where one run is served, its workers are not") {
  ServerOptions options;
  options.only_run = RunId("mine");
  LiveCoordinator coordinator(options);
  const std::string hello = requests::validate() + requests::ping(1);
  for (const std::string& first : {requests::compare_set("/torch.rendezvous.none", "", "state"),
                                   requests::set("/none/torchelastic/role_info/1", "{}")}) {
    Client torchrun(coordinator.port());
    CHECK(torchrun.ask(hello, 4) == requests::u32(1));
    torchrun.send(first);
    CHECK(torchrun.closed());
  }
  CHECK_THAT(coordinator.log(), ContainsSubstring("a torchrun agent came to the coordinator of a "
                                                  "ddprun run; start its node with ddprun, or "
                                                  "give torchrun another port (--rdzv-endpoint, "
                                                  "or --master-port with static)"));
  Client worker(coordinator.port());
  const std::string set = requests::set("k", "v") + requests::compare_set("k", "v", "w");
  CHECK(worker.ask(hello + set, 13) == requests::u32(1) + requests::text("w"));
}

TEST_CASE("agents are recognized however their first bytes are split") {
  LiveCoordinator coordinator;
  const std::string hello = "DDPR" + protocol::frame(protocol::encode(hello_of("run", "a", 2)));
  Client client(coordinator.port());
  for (const char one : hello) client.send({&one, 1});
  CHECK_THAT(client.receive(120), ContainsSubstring("\"waiting\""));
}

TEST_CASE(
    "a client that has said nothing yet takes no descriptor, later one, and hears of the end") {
  LiveCoordinator coordinator;
  const Client speaks = store::connect(coordinator.port());
  const std::ptrdiff_t before = descriptors();
  const auto begun = std::chrono::steady_clock::now();
  Client silent(coordinator.port());
  const Client after = store::connect(coordinator.port());
  const std::ptrdiff_t soon = descriptors();
  const bool too_slow = std::chrono::steady_clock::now() - begun > std::chrono::milliseconds(900);
  CHECK((soon == before + 3 || too_slow));
  CHECK(eventually([&] { return descriptors() == before + 4; }));
  coordinator.close();
  CHECK(silent.closed());
}

TEST_CASE("a new store is empty, clients of the ended round keep theirs, agents are not affected") {
  LiveCoordinator coordinator;
  Agent agent(coordinator.port(), hello_of("run", "a", 1));
  agent.start_round();
  auto before = std::make_unique<Client>(store::connect(coordinator.port()));
  before->send(requests::set("k", "old"));
  CHECK(before->ask(requests::get("k"), 11) == requests::text("old"));
  agent.say(protocol::Stopped{Round(1)});
  agent.say(protocol::Beat{});
  agent.await<protocol::Beat>();
  std::atomic<int> idle = 0;
  coordinator.on_thread(
      [&idle](auto& server) { server->begin_fresh_store(Round(1), [&idle] { ++idle; }); });
  CHECK(store::connect(coordinator.port()).ask(requests::get("k"), 8) == requests::text(""));
  CHECK(before->ask(requests::get("k"), 11) == requests::text("old"));
  CHECK(idle == 0);
  SECTION("until they have gone") {
    before.reset();
    CHECK(eventually([&idle] { return idle == 1; }));
  }
  SECTION("until it is closed") {
    coordinator.on_thread([](auto& server) { server->close_store(Round(1)); });
    CHECK(before->closed());
  }
  agent.say(protocol::Beat{});
  agent.await<protocol::Beat>();
}

TEST_CASE("a coordinator that is closed calls all who wait for a store to become idle") {
  LiveCoordinator coordinator;
  const Client keeps_the_store_busy = store::connect(coordinator.port());
  std::atomic<int> idle = 0;
  coordinator.on_thread([&idle](auto& server) {
    server->begin_fresh_store(Round(1), [&idle] { ++idle; });
    server->close();
    server->begin_fresh_store(Round(2), [&idle] { ++idle; });
    server->begin_fresh_store(Round(3), [&idle] { ++idle; });
  });
  CHECK(eventually([&idle] { return idle == 3; }));
  coordinator.on_thread([&idle](auto& server) {
    server->begin_fresh_store(Round(4), [&idle] { ++idle; });
    server.reset();
  });
  coordinator.on_thread([](auto&) {});
  CHECK(idle == 3);
}

TEST_CASE("where all places are taken, who says nothing gives way to who does") {
  ServerOptions options;
  options.store.connections = 3;
  LiveCoordinator coordinator(options);
  Client one(coordinator.port());
  Client other(coordinator.port());
  // The kernel keeps them back for a second, in which most clients have said something.
  CHECK(eventually([&coordinator] {
    std::string json;
    coordinator.on_thread([&json](auto& server) { json = server->status_json(); });
    return boost::json::parse(json).at("connections") == 2;
  }));
  Client keeps_its_place = store::connect(coordinator.port());
  Client comes = store::connect(coordinator.port());
  CHECK(one.silent() != other.silent());
  CHECK(comes.ask(requests::get("k"), 8) == requests::text(""));
  CHECK(keeps_its_place.ask(requests::get("k"), 8) == requests::text(""));
}

TEST_CASE("GET /status shows the runs, the connected nodes and the contents of the store") {
  LiveCoordinator coordinator;
  Agent here(coordinator.port(), hello_of("waits", "a", 2));
  here.await<protocol::Waiting>();
  Agent works(coordinator.port(), hello_of("works", "b", 1));
  works.start_round();
  works.say(protocol::Beat{});
  works.await<protocol::Beat>();
  Client client = store::connect(coordinator.port());
  CHECK(client.ask(requests::add("n", 1), 8) == requests::i64(1));
  const auto status = status_of(coordinator.port());
  CHECK(status.at("agents") == 2);
  CHECK(status.at("store").at("keys") == 1);
  CHECK(status.at("store").at("connections") == 1);
  CHECK(status.at("uptime_ms").is_int64());
  const auto& waits = status.at("runs").as_array().at(0);
  CHECK(waits.at("run_id") == "waits");
  CHECK(waits.at("nodes_here") == 1);
  CHECK_THAT(std::string(waits.at("reason").as_string()), ContainsSubstring("1 of 2"));
  const auto& running = status.at("runs").as_array().at(1);
  CHECK(running.at("phase") == "running");
  CHECK(running.at("round") == 1);
  CHECK(running.at("nodes").as_array().at(0).at("state") == "running");
  CHECK(running.at("nodes").as_array().at(0).at("address") == "127.0.0.1");
}

TEST_CASE("a browser gets a page, an invalid request its error code") {
  LiveCoordinator coordinator;
  CHECK_THAT(get(coordinator.port(), "/status", "Accept: text/html\r\n"),
             ContainsSubstring("text/html") && ContainsSubstring("</html>"));
  CHECK_THAT(get(coordinator.port(), "/"), ContainsSubstring("<h1>ddprun at 127.0.0.1:"));
  CHECK_THAT(get(coordinator.port(), "/etc/passwd"), ContainsSubstring("404 Not Found"));
  Client poster(coordinator.port());
  poster.send("POST /status HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello");
  CHECK_THAT(poster.receive(4096), ContainsSubstring("405 Method Not Allowed"));
  Client half(coordinator.port());
  half.send("GET /status HTTP/1.1\r\n\r\n");
  half.finish_sending();
  CHECK_THAT(half.receive(4096), ContainsSubstring("200 OK"));
}
