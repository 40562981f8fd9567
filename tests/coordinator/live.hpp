// A real coordinator::Server on a thread of its own, and agents that speak frames, over loopback.
#pragma once

#include <netinet/tcp.h>

#include <boost/asio/co_spawn.hpp>
#include <future>
#include <memory>
#include <string>
#include <utility>

#include "rendezvous/coordinator/server.hpp"
#include "rendezvous/protocol/codec.hpp"
#include "rendezvous/protocol/frame.hpp"
#include "tests/store/live.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/server_thread.hpp"

namespace ddprun::coordinator {

using store::Client;
using store::eventually;

class LiveCoordinator {
 public:
  explicit LiveCoordinator(ServerOptions options = {}) {
    options.log = thread_.logger();
    server_ = std::make_unique<Server>(thread_.executor(), thread_.listen(), options);
    port_ = server_->endpoint().port();
    REQUIRE(server_->start().has_value());
    thread_.start();
  }
  ~LiveCoordinator() { close(); }

  [[nodiscard]] std::uint16_t port() const { return port_; }
  /// Destroys the server, whatever is connected.
  void close() {
    on_thread([](auto& server) { server.reset(); });
  }
  std::string log() { return thread_.log(); }
  /// Runs `work(std::unique_ptr<Server>&)` on the server's thread.
  template <class Work>
  void on_thread(Work work) {
    thread_.run([&] { work(server_); });
  }
  /// Completes when settle() does.
  std::future<void> settled() {
    auto done = std::make_shared<std::promise<void>>();
    on_thread([&](std::unique_ptr<Server>& server) {
      boost::asio::co_spawn(thread_.executor(), server->settle(),
                            [done](const std::exception_ptr&) { done->set_value(); });
    });
    return done->get_future();
  }

 private:
  ServerThread thread_;
  std::unique_ptr<Server> server_;
  std::uint16_t port_ = 0;
};

inline bool is_ready(std::future<void>& future) {
  return future.wait_for(std::chrono::milliseconds(kHung_ms)) == std::future_status::ready;
}

/// The hello of one of `nodes` agents with two workers each, of a run that waits for nobody longer
/// than it must.
inline protocol::Hello hello_of(const std::string& run, const std::string& name, int nodes) {
  protocol::Hello hello;
  hello.run_id = RunId(run);
  hello.agent = AgentId("agent-" + run + "-" + name);
  hello.host = name;
  hello.store_port = 4000;
  hello.local_world_size = 2;
  hello.terms.nodes_min = hello.terms.nodes_max = nodes;
  hello.terms.keep_alive_interval = protocol::Milliseconds(10'000);  // machines of tests are slow
  return hello;
}

/// The same of a run of at most two that goes on with one.
inline protocol::Hello elastic_hello(const std::string& name) {
  auto hello = hello_of("run", name, 2);
  hello.terms.nodes_min = 1;
  return hello;
}

/// The same, where two seconds of silence are a loss.
inline protocol::Hello soon_lost_hello(const std::string& name) {
  auto hello = elastic_hello(name);
  hello.terms.keep_alive_interval = protocol::Milliseconds(400);
  hello.terms.keep_alive_max_attempt = 5;
  return hello;
}

/// An agent as far as the coordinator can tell.
class Agent {
 public:
  explicit Agent(std::uint16_t port, const std::string& first = "") : client_(port) {
    const int on = 1;
    ::setsockopt(client_.fd(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    client_.send("DDPR" + first);
  }
  /// In one piece: the coordinator's patience with half of it may be short.
  Agent(std::uint16_t port, const protocol::Hello& hello)
      : Agent(port, protocol::frame(protocol::encode(hello))) {}

  void say(const protocol::Message& message) {
    client_.send(protocol::frame(protocol::encode(message)));
  }
  /// The next message; fails the test when the coordinator closes instead or says nothing.
  protocol::Message next() {
    auto message = try_next();
    REQUIRE(message.has_value());
    return *message;
  }
  /// Nothing when the connection ended.
  std::optional<protocol::Message> try_next() {
    const std::string head = client_.receive(4);
    if (head.size() < 4) return std::nullopt;
    std::size_t length = 0;
    for (const char one : head) length = length << 8 | static_cast<unsigned char>(one);
    auto message = protocol::decode(client_.receive(length));
    REQUIRE(message.has_value());
    return *message;
  }
  /// The next message of this kind, whatever comes before it.
  template <class Kind>
  Kind await() {
    while (true) {
      const protocol::Message message = next();
      if (const auto* one = std::get_if<Kind>(&message)) return *one;
    }
  }
  /// Takes the round on and says that its workers run.
  protocol::StartRound start_round(std::uint16_t next_store_port = 4001) {
    const auto round = await<protocol::StartRound>();
    protocol::Report report;
    report.round = round.stamp.number;
    report.store_port = next_store_port;
    say(report);
    report.state = protocol::GroupState::kRunning;
    say(report);
    return round;
  }
  void report(const protocol::StartRound& round, protocol::GroupState state) {
    protocol::Report report;
    report.round = round.stamp.number;
    report.state = state;
    report.store_port = 4002;
    if (state == protocol::GroupState::kFailed) {
      protocol::WorkerExit exit;
      exit.rank = round.rank_base;
      exit.exit_code = 7;
      exit.cause = "exit code 7";
      report.exits.push_back(exit);
    }
    say(report);
  }
  /// True when the coordinator closes, whatever it said before.
  bool closed() {
    while (try_next()) {
    }
    return true;
  }
  [[nodiscard]] Client& socket() { return client_; }

 private:
  Client client_;
};

}  // namespace ddprun::coordinator
