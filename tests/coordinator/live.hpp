// A real coordinator::Server on its own thread, and agents that send frames, over loopback.
#pragma once

#include <netinet/tcp.h>

#include <boost/asio/co_spawn.hpp>
#include <future>
#include <memory>
#include <string>
#include <utility>

#include "rendezvous/coordinator/live_runs.hpp"
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
  /// `state_file`: see LiveRuns; empty: none.
  explicit LiveCoordinator(ServerOptions options = {}, const std::string& state_file = "") {
    options.log = thread_.logger();
    if (!state_file.empty()) {
      const auto warn = [log = options.log](const std::string& text) { log->warn("{}", text); };
      options.live_runs =
          std::make_shared<LiveRuns>(state_file, DiskThread(thread_.executor()), warn);
    }
    server_ = std::make_unique<Server>(thread_.executor(), thread_.listen(), options);
    port_ = server_->endpoint().port();
    REQUIRE(server_->start().has_value());
    thread_.start();
  }
  ~LiveCoordinator() { close(); }

  [[nodiscard]] std::uint16_t port() const { return port_; }
  /// Destroys the server with its open connections.
  void close() {
    on_thread([](auto& server) { server.reset(); });
  }
  std::string log() { return thread_.log(); }
  /// Runs `work(std::unique_ptr<Server>&)` on the server's thread.
  template <class Work>
  void on_thread(Work work) {
    thread_.run([&] { work(server_); });
  }
  /// Completes when settle() completes.
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

/// The hello of one of `nodes` agents with two workers each, of a run with minimal timeouts.
inline protocol::Hello hello_of(const std::string& run, const std::string& name, int nodes) {
  protocol::Hello hello;
  hello.run_id = RunId(run);
  hello.agent = AgentId("agent-" + run + "-" + name);
  hello.host = name;
  hello.store_port = 4000;
  hello.local_world_size = 2;
  hello.terms.nodes_min = hello.terms.nodes_max = nodes;
  hello.terms.keep_alive_interval = protocol::Milliseconds(10'000);  // test machines are slow
  return hello;
}

/// The same for a run of one to two nodes.
inline protocol::Hello elastic_hello(const std::string& name) {
  auto hello = hello_of("run", name, 2);
  hello.terms.nodes_min = 1;
  return hello;
}

/// The same with a silence limit of 2 s.
inline protocol::Hello soon_lost_hello(const std::string& name) {
  auto hello = elastic_hello(name);
  hello.terms.keep_alive_interval = protocol::Milliseconds(400);
  hello.terms.keep_alive_max_attempt = 5;
  return hello;
}

/// Looks like an agent to the coordinator.
class Agent {
 public:
  explicit Agent(std::uint16_t port, const std::string& first = "") : client_(port) {
    const int on = 1;
    ::setsockopt(client_.fd(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    client_.send("DDPR" + first);
  }
  /// Sends in one piece, because the coordinator's timeout for half a hello may be short.
  Agent(std::uint16_t port, const protocol::Hello& hello)
      : Agent(port, protocol::frame(protocol::encode(hello))) {}

  void say(const protocol::Message& message) {
    client_.send(protocol::frame(protocol::encode(message)));
  }
  /// The next message; fails the test if the coordinator closes the connection or sends nothing.
  protocol::Message next() {
    auto message = try_next();
    REQUIRE(message.has_value());
    return *message;
  }
  /// nullopt if the connection has ended.
  std::optional<protocol::Message> try_next() {
    const std::string head = client_.receive(4);
    if (head.size() < 4) return std::nullopt;
    std::size_t length = 0;
    for (const char one : head) length = length << 8 | static_cast<unsigned char>(one);
    auto message = protocol::decode(client_.receive(length));
    REQUIRE(message.has_value());
    return *message;
  }
  /// The next message of this kind; skips others.
  template <class Kind>
  Kind await() {
    while (true) {
      const protocol::Message message = next();
      if (const auto* one = std::get_if<Kind>(&message)) return *one;
    }
  }
  /// Accepts the round and reports that its workers run.
  protocol::StartRound start_round(std::uint16_t next_store_port = 4001) {
    const auto round = await<protocol::StartRound>();
    protocol::Report report;
    report.round = round.stamp.number;
    report.store_port = next_store_port;
    say(report);
    report.state = protocol::NodeState::kRunning;
    say(report);
    return round;
  }
  void report(const protocol::StartRound& round, protocol::NodeState state) {
    protocol::Report report;
    report.round = round.stamp.number;
    report.state = state;
    report.store_port = 4002;
    if (state == protocol::NodeState::kFailed) {
      WorkerExit& exit = report.failure.emplace();
      exit.worker.rank = round.rank_base;
      exit.status = ExitStatus::exited(7);
    }
    say(report);
  }
  /// True if the coordinator closes the connection, after any messages.
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
