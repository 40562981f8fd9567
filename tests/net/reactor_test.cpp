// The reactor under both servers: turns, the end, and a process without descriptors.
#include "net/reactor.hpp"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/write.hpp>
#include <chrono>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "net/listen.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/descriptor_limit.hpp"

using namespace ddprun;
using namespace ddprun::net;

namespace asio = boost::asio;
using asio::ip::tcp;

namespace {

constexpr std::chrono::seconds kReactorHung{20};

/// A server that counts its events and calls back into the test.
struct CountingServer final : Reactor::Handler, std::enable_shared_from_this<CountingServer> {
  explicit CountingServer(asio::io_context& io) : reactor(io.get_executor()) {}
  ~CountingServer() { reactor.close(); }

  void on_accept(int socket, const sockaddr_storage& from) override {
    REQUIRE(reactor.watch(connections.add(socket, from), kReadable));
    if (accepted) accepted();
  }
  void on_event(std::uint64_t id, std::uint32_t) override {
    Connection* connection = connections.find(id);
    if (connection == nullptr) return;
    char byte = 0;
    const bool ended = ::recv(connection->fd, &byte, 1, 0) <= 0;
    ++events;
    last = id;
    if (ended) connections.erase(id);
    if (ended) reactor.resume_accepting();
    if (event) event();
  }
  Reactor::Turn on_batch_end() override {
    ++batches;
    return turn;
  }
  void on_exhausted(const std::string& why) override {
    exhausted.push_back(reactor.exhausted_text(why, connections.size()));
  }

  void start(asio::io_context& io) {
    auto listener = net::listen(io.get_executor(), asio::ip::address_v4::loopback(), 0);
    REQUIRE(listener.has_value());
    reactor.listen(std::move(*listener));
    REQUIRE(reactor.start(shared_from_this(), "the test").has_value());
  }

  Reactor reactor;
  ConnectionTable<Connection> connections;
  std::function<void()> accepted;
  std::function<void()> event;
  Reactor::Turn turn = Reactor::Turn::kMayContinue;
  int events = 0;
  std::uint64_t last = 0;  // whose event it was
  int batches = 0;
  std::vector<std::string> exhausted;
};

struct ReactorScene {
  ReactorScene() { server->start(io); }

  [[nodiscard]] tcp::socket connect() {
    tcp::socket socket(clients);
    socket.connect(server->reactor.endpoint());
    return socket;
  }
  template <class Condition>
  [[nodiscard]] bool runs_until(Condition condition) {
    const auto deadline = std::chrono::steady_clock::now() + kReactorHung;
    while (!condition()) {
      if (std::chrono::steady_clock::now() > deadline) return false;
      io.run_one_for(std::chrono::milliseconds(100));
    }
    return true;
  }

  asio::io_context clients;
  asio::io_context io;
  std::shared_ptr<CountingServer> server = std::make_shared<CountingServer>(io);
};

void spin(std::chrono::microseconds time) {
  const auto until = std::chrono::steady_clock::now() + time;
  while (std::chrono::steady_clock::now() < until) {
  }
}

void write_byte(tcp::socket& socket) {
  asio::write(socket, asio::buffer("x", 1));
}

}  // namespace

TEST_CASE("connections are accepted, their events reported, and their end too") {
  ReactorScene scene;
  tcp::socket client = scene.connect();
  write_byte(client);
  CHECK(scene.runs_until([&] { return scene.server->events == 1; }));
  client.close();
  CHECK(scene.runs_until([&] { return scene.server->connections.size() == 0; }));
}

TEST_CASE("a turn that is used up lets the other work of the io_context go first") {
  ReactorScene scene;
  std::vector<tcp::socket> clients;
  for (int count = 0; count < 3; ++count) clients.push_back(scene.connect());
  REQUIRE(scene.runs_until([&] { return scene.server->connections.size() == 3; }));
  scene.server->turn = Reactor::Turn::kIsUsedUp;
  // An event reads one byte, so the sockets stay readable from batch to batch.
  for (tcp::socket& client : clients) asio::write(client, asio::buffer("12345678", 8));
  scene.server->batches = 0;
  int batches_before_other_work = 0;
  scene.server->event = [&] {
    if (scene.server->events > 1) return;
    asio::post(scene.io, [&] { batches_before_other_work = scene.server->batches; });
  };
  REQUIRE(scene.runs_until([&] { return scene.server->events == 24; }));
  CHECK(batches_before_other_work == 1);
  CHECK(scene.server->batches >= 8);
}

TEST_CASE("peers that make much work leave the other work its turn") {
  const auto turn = GENERATE(Reactor::Turn::kIsUsedUp, Reactor::Turn::kMayContinue);
  constexpr int kClients = 20;
  ReactorScene scene;
  std::vector<tcp::socket> clients;
  for (int count = 0; count < kClients; ++count) clients.push_back(scene.connect());
  REQUIRE(scene.runs_until([&] { return scene.server->connections.size() == kClients; }));
  for (tcp::socket& client : clients) asio::write(client, asio::buffer("12345678", 8));
  scene.server->turn = turn;
  scene.server->event = [] { spin(kTurnTime / 2); };
  std::vector<int> turns;  // events between one turn of the other work and the next
  int seen = 0;
  std::function<void()> other_work = [&] {
    if (scene.server->events > seen) turns.push_back(scene.server->events - seen);
    seen = scene.server->events;
    if (seen < 8 * kClients) asio::post(scene.io, other_work);
  };
  asio::post(scene.io, other_work);
  REQUIRE(scene.runs_until([&] { return seen == 8 * kClients; }));
  REQUIRE(turns.size() > 1);
  const int most = turn == Reactor::Turn::kIsUsedUp ? 1 : 2;  // that take kTurnTime
  CHECK(*std::max_element(turns.begin() + 1, turns.end()) <= most);
}

TEST_CASE("what a turn leaves of a batch is handled before anyone is served twice") {
  constexpr int kClients = 20;
  ReactorScene scene;
  std::vector<tcp::socket> clients;
  for (int count = 0; count < kClients; ++count) clients.push_back(scene.connect());
  REQUIRE(scene.runs_until([&] { return scene.server->connections.size() == kClients; }));
  for (tcp::socket& client : clients) asio::write(client, asio::buffer("12345678", 8));
  std::map<std::uint64_t, int> served;
  int most_apart = 0;
  scene.server->event = [&] {
    ++served[scene.server->last];
    const int least =
        served.size() < kClients
            ? 0
            : std::min_element(served.begin(), served.end(), [](auto& one, auto& other) {
                return one.second < other.second;
              })->second;
    most_apart = std::max(most_apart, served[scene.server->last] - least);
    spin(served.size() % 2 == 0 ? 3 * kTurnTime : std::chrono::microseconds(0));
  };
  REQUIRE(scene.runs_until([&] { return scene.server->events == 8 * kClients; }));
  CHECK(most_apart <= 1);
}

TEST_CASE("new connections do not delay those that are connected") {
  constexpr int kNew = 200;
  ReactorScene scene;
  tcp::socket served = scene.connect();
  REQUIRE(scene.runs_until([&] { return scene.server->connections.size() == 1; }));
  std::vector<tcp::socket> clients;
  for (int count = 0; count < kNew; ++count) clients.push_back(scene.connect());
  std::size_t most_between = 0;
  std::size_t accepted = 1;
  scene.server->event = [&] {
    const std::size_t now = scene.server->connections.size();
    most_between = std::max(most_between, now - std::exchange(accepted, now));
    if (now <= kNew) write_byte(served);
  };
  write_byte(served);
  REQUIRE(scene.runs_until([&] { return scene.server->connections.size() > kNew; }));
  CHECK(accepted > kNew / 2);
  CHECK(most_between <= std::size_t{2 * kAcceptsPerEvent});
}

TEST_CASE("what has been received is handled before a timer decides") {
  const DescriptorLimit both_ends(1500);
  ReactorScene scene;
  std::vector<tcp::socket> clients;
  for (int count = 0; count < 600; ++count) clients.push_back(scene.connect());
  REQUIRE(scene.runs_until([&] { return scene.server->connections.size() == 600; }));
  for (tcp::socket& client : clients) write_byte(client);
  // Loopback delivers at once, except on a busy machine.
  scene.server->connections.for_each([](const Connection& connection) {
    pollfd received{connection.fd, POLLIN, 0};
    REQUIRE(::poll(&received, 1, 20'000) == 1);
  });
  scene.server->reactor.drain(600);
  CHECK(scene.server->events == 600);
}

TEST_CASE("a server that closes inside an event gets no further event, and may be destroyed") {
  ReactorScene scene;
  std::vector<tcp::socket> clients;
  for (int count = 0; count < 5; ++count) clients.push_back(scene.connect());
  REQUIRE(scene.runs_until([&] { return scene.server->connections.size() == 5; }));
  const std::weak_ptr<CountingServer> watched = scene.server;
  scene.server->event = [&] {
    scene.server->reactor.close();
    scene.server->connections.clear();
    scene.server.reset();  // the pending operation still holds it
  };
  for (tcp::socket& client : clients) write_byte(client);
  CHECK(scene.runs_until([&] { return watched.expired(); }));
}

TEST_CASE("a server that closes while it accepts leaves the other connections to the kernel") {
  ReactorScene scene;
  std::vector<tcp::socket> clients;
  for (int count = 0; count < 5; ++count) clients.push_back(scene.connect());
  scene.server->accepted = [&] { scene.server->reactor.close(); };
  CHECK(scene.runs_until([&] { return scene.server->connections.size() > 0; }));
  scene.io.poll();
  CHECK(scene.server->connections.size() == 1);
}

TEST_CASE("out of descriptors, the reason is reported once, and a new client is served later") {
  ReactorScene scene;
  std::vector<tcp::socket> clients;
  for (int count = 0; count < 3; ++count) clients.push_back(scene.connect());
  const int highest = ::dup(0);
  REQUIRE(highest >= 0);
  ::close(highest);
  bool idle = false;
  {
    const DescriptorLimit none_left(highest);
    CHECK(scene.runs_until([&] { return !scene.server->exhausted.empty(); }));
    idle = scene.io.poll() == 0;  // the listener is not polled although it is readable
  }
  CHECK(idle);
  // Nothing calls resume_accepting(): the reactor tries again by itself.
  CHECK(scene.runs_until([&] { return scene.server->connections.size() == 3; }));
  REQUIRE(scene.server->exhausted.size() == 1);
  CHECK_THAT(scene.server->exhausted[0],
             ContainsSubstring("cannot accept clients: Too many open files; 0 are connected"));
}
