// Runs an io_context until a condition holds, and a scripted coordinator on loopback.
#pragma once

#include <sys/socket.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "net/listen.hpp"
#include "rendezvous/client/connection.hpp"
#include "rendezvous/protocol/codec.hpp"
#include "rendezvous/protocol/frame.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/free_port.hpp"

namespace ddprun::client {

namespace asio = boost::asio;
using asio::ip::tcp;

/// A wait longer than this counts as hung.
inline constexpr Duration kHung = std::chrono::seconds(20);

/// Runs `io` until the condition holds; returns false on timeout, or if no work is left.
template <class Condition>
[[nodiscard]] bool runs_until(asio::io_context& io, Condition condition) {
  const TimePoint end = Clock::now() + kHung;
  io.restart();
  while (!condition()) {
    if (Clock::now() >= end || io.run_one_until(end) == 0) return condition();
  }
  return true;
}

/// Runs all ready handlers without waiting.
inline void run_what_is_ready(asio::io_context& io) {
  io.restart();
  io.poll();
}

/// An accepted connection, controlled by the test.
class Peer {
 public:
  Peer(asio::io_context& io, tcp::socket socket) : io_(io), socket_(std::move(socket)) {}

  /// Reads exactly `count` bytes, or fewer at the end of the connection.
  std::string receive(std::size_t count) {
    std::string bytes(count, '\0');
    std::optional<std::size_t> got;
    asio::async_read(socket_, asio::buffer(bytes), [&got](auto, std::size_t n) { got = n; });
    REQUIRE(runs_until(io_, [&got] { return got.has_value(); }));
    bytes.resize(*got);
    return bytes;
  }
  std::string receive_frame() {
    const std::string head = receive(protocol::kFrameHeaderBytes);
    REQUIRE(head.size() == protocol::kFrameHeaderBytes);
    std::size_t length = 0;
    for (const char byte : head) length = length << 8 | static_cast<unsigned char>(byte);
    return receive(length);
  }
  protocol::Message receive_message() {
    const auto message = protocol::decode(receive_frame());
    REQUIRE(message.has_value());
    return *message;
  }
  /// True if the connection ended without another byte.
  bool is_over() { return receive(1).empty(); }
  /// Has no effect if the other side has closed already.
  void send(const std::string& bytes) {
    boost::system::error_code ignored;
    asio::write(socket_, asio::buffer(bytes), ignored);
  }
  void say(const protocol::Message& message) { send(protocol::frame(protocol::encode(message))); }
  void finish_sending() {
    boost::system::error_code ignored;
    socket_.shutdown(tcp::socket::shutdown_send, ignored);
  }
  void close() { socket_.close(); }
  void reset() {
    socket_.set_option(asio::socket_base::linger(true, 0));
    socket_.close();
  }
  [[nodiscard]] tcp::socket& socket() { return socket_; }

 private:
  asio::io_context& io_;
  tcp::socket socket_;
};

class Listener {
 public:
  explicit Listener(asio::io_context& io, const std::string& address = "127.0.0.1",
                    std::uint16_t port = 0)
      : io_(io), acceptor_(*net::listen(io.get_executor(), asio::ip::make_address(address), port)) {
    acceptor_.set_option(asio::socket_base::receive_buffer_size(4096));  // fills quickly
  }
  [[nodiscard]] std::uint16_t port() const { return acceptor_.local_endpoint().port(); }
  [[nodiscard]] tcp::endpoint where() const { return acceptor_.local_endpoint(); }
  Peer accept() {
    std::optional<tcp::socket> accepted;
    acceptor_.async_accept([&accepted](boost::system::error_code why, tcp::socket socket) {
      if (!why) accepted = std::move(socket);
    });
    REQUIRE(runs_until(io_, [&accepted] { return accepted.has_value(); }));
    return Peer(io_, std::move(*accepted));
  }
  [[nodiscard]] bool nobody_waits() {
    acceptor_.non_blocking(true);
    boost::system::error_code why;
    tcp::socket ignored(io_);
    acceptor_.accept(ignored, why);
    return why == asio::error::would_block;
  }
  /// Connection requests are neither accepted nor refused from now on. Blocks until that is the
  /// case.
  void fall_silent() {
    REQUIRE(::listen(acceptor_.native_handle(), 0) == 0);
    filler_.connect(where());
  }

 private:
  asio::io_context& io_;
  tcp::acceptor acceptor_;
  tcp::socket filler_{io_};
};

/// A link over TCP that records its events.
class Agent {
 public:
  Agent(asio::io_context& io, const std::string& host, std::uint16_t port, LinkSecret secret = {})
      : io_(io),
        link_(make_tcp_link(
            io.get_executor(), host, port, [this](const Event& e) { take(e); },
            std::move(secret))) {}

  CoordinatorLink& operator*() { return *link_; }
  CoordinatorLink* operator->() { return link_.get(); }
  void destroy() { link_.reset(); }
  /// The next event, in order; fails the test if it is of another type.
  template <class Kind>
  Kind next() {
    REQUIRE(runs_until(io_, [this] { return at_ < events_.size(); }));
    const Event event = events_[at_++];
    if (const auto* down = std::get_if<LinkDown>(&event)) INFO(down->evidence);
    REQUIRE(std::holds_alternative<Kind>(event));
    return std::get<Kind>(event);
  }
  [[nodiscard]] bool heard_nothing_more() {
    run_what_is_ready(io_);
    return at_ == events_.size();
  }
  [[nodiscard]] std::size_t heard() const { return events_.size(); }
  /// Completes when flush() completes.
  void flush() {
    bool done = false;
    asio::co_spawn(io_, link_->flush(),
                   [&done](const std::exception_ptr& failure) { done = failure == nullptr; });
    REQUIRE(runs_until(io_, [&done] { return done; }));
  }

  std::function<void(const Event&)> on_event;

 private:
  void take(const Event& event) {
    events_.push_back(event);
    if (on_event) on_event(event);
  }
  asio::io_context& io_;
  std::vector<Event> events_;
  std::size_t at_ = 0;
  std::shared_ptr<CoordinatorLink> link_;
};

}  // namespace ddprun::client
