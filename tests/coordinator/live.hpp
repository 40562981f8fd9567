// A real coordinator::Server on a thread of its own, and agents that speak frames, over loopback.
#pragma once

#include <netinet/tcp.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <future>
#include <memory>
#include <sstream>
#include <string>
#include <thread>
#include <utility>

#include "net/listen.hpp"
#include "rendezvous/coordinator/server.hpp"
#include "rendezvous/protocol/codec.hpp"
#include "rendezvous/protocol/frame.hpp"
#include "tests/store/live.hpp"
#include "tests/support/catch.hpp"

namespace ddprun::coordinator {

using store::Client;
using store::eventually;
using store::kHung_ms;

class LiveCoordinator {
 public:
  explicit LiveCoordinator(ServerOptions options = {}) : work_(io_.get_executor()) {
    auto listener = net::listen(io_.get_executor(), boost::asio::ip::address_v4::loopback(), 0);
    REQUIRE(listener.has_value());
    auto sink = std::make_shared<spdlog::sinks::ostream_sink_mt>(log_text_);
    options.log = std::make_shared<spdlog::logger>("test", sink);
    options.log->set_level(spdlog::level::debug);
    server_ = std::make_unique<Server>(io_.get_executor(), std::move(*listener), options);
    port_ = server_->endpoint().port();
    REQUIRE(server_->start().has_value());
    thread_ = std::thread([this] { io_.run(); });
  }
  ~LiveCoordinator() {
    close();
    work_.reset();
    thread_.join();
  }

  [[nodiscard]] std::uint16_t port() const { return port_; }
  /// Destroys the server, whatever is connected.
  void close() {
    on_thread([this](auto&) { server_.reset(); });
  }
  std::string log() {
    std::string text;
    on_thread([&](auto&) { text = log_text_.str(); });
    return text;
  }
  /// Runs `work(std::unique_ptr<Server>&)` on the server's thread.
  template <class Work>
  void on_thread(Work work) {
    std::promise<void> done;
    boost::asio::post(io_, [&] {
      work(server_);
      done.set_value();
    });
    REQUIRE(done.get_future().wait_for(std::chrono::milliseconds(kHung_ms)) ==
            std::future_status::ready);
  }
  /// Completes when settle() does.
  std::future<void> settled() {
    auto done = std::make_shared<std::promise<void>>();
    on_thread([&](std::unique_ptr<Server>& server) {
      boost::asio::co_spawn(io_, server->settle(),
                            [done](const std::exception_ptr&) { done->set_value(); });
    });
    return done->get_future();
  }

 private:
  boost::asio::io_context io_{1};
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_;
  std::ostringstream log_text_;
  std::unique_ptr<Server> server_;
  std::uint16_t port_ = 0;
  std::thread thread_;
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

/// An agent as far as the coordinator can tell.
class Agent {
 public:
  explicit Agent(std::uint16_t port) : client_(port) {
    const int on = 1;
    ::setsockopt(client_.fd(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    client_.send("DDPR");
  }
  Agent(std::uint16_t port, const protocol::Hello& hello) : Agent(port) { say(hello); }

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
