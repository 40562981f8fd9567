// The c10d store as a TCP server for unmodified PyTorch clients, versions 1.9 to 2.15. The I/O
// shell around the Parser (wire.hpp) and the Store: it owns the listening socket and all
// connections.
//
// Thread rule: the thread of the executor's io_context. A Server may be destroyed on that thread at
// any time, even with open connections, except from within its own log calls. Several servers may
// exist in sequence or at the same time. It never resolves a name, never blocks on a peer, and runs
// no timer in normal operation.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "base/store_facts.hpp"
#include "rendezvous/store/refusal.hpp"

struct sockaddr_storage;

namespace spdlog {
class logger;
}

namespace ddprun::store {

class Peers;

/// Whether agents of torchrun may form their rendezvous here.
enum class Torchrun { kServed, kRefused };

struct ServerOptions {
  Limits limits;
  /// Receives one line per cause and peer when a connection is refused or closed, within
  /// kLogLinesMax; null disables logging.
  std::shared_ptr<spdlog::logger> log;
  Torchrun torchrun = Torchrun::kServed;
  /// Who may connect; null: all clients.
  std::shared_ptr<Peers> peers = nullptr;
  /// Everything is deleted when no client was connected for this long; unset: never.
  std::optional<std::chrono::milliseconds> forgets_after = {};
};

/// Current contents of a store.
struct Counters {
  std::size_t connections = 0;
  std::size_t keys = 0;     // queues not included
  std::size_t waits = 0;    // (connection, name) pairs
  std::size_t bytes = 0;    // bytes counted against Limits::store_bytes
  std::size_t refused = 0;  // connections that Peers did not admit, ever
};

class Server {
 public:
  /// Takes ownership of `listener`, which is already listening (net::listen): clients may connect
  /// at once and are served after start().
  Server(boost::asio::any_io_executor executor, boost::asio::ip::tcp::acceptor listener,
         ServerOptions options);
  /// A store without a listener: its only clients are those passed to adopt().
  Server(boost::asio::any_io_executor executor, ServerOptions options);
  /// Same as close().
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  /// Starts serving, until close(); there is nothing to cancel. Call once. Fails with kSystem if
  /// the process is out of descriptors.
  [[nodiscard]] Result<void> start();
  /// Serves a connection that the caller accepted and read `received` from. Takes ownership of
  /// `socket`, which must be non-blocking and CLOEXEC. Call only after start().
  void adopt(int socket, const sockaddr_storage& from, std::string_view received);
  /// Calls `idle` once, later, when no connection is open, at the latest after close(); never after
  /// the destructor. Replaces an earlier one.
  void when_idle(std::function<void()> idle);
  /// Calls `seen` whenever a second process announces itself as rank 0 (rank_zero.hpp), before its
  /// request is answered; not after close(). Replaces an earlier one.
  void on_rank_claims(std::function<void(const RankClaims&)> seen);
  /// Closes the listening socket and all connections; blocked clients notice within milliseconds.
  /// Nothing is served afterwards. Idempotent.
  void close();

  /// The address and actual port of the listener; 0.0.0.0:0 without a listener. Valid after
  /// close().
  [[nodiscard]] boost::asio::ip::tcp::endpoint endpoint() const;
  [[nodiscard]] std::uint16_t port() const { return endpoint().port(); }
  /// Number of open connections.
  [[nodiscard]] std::size_t connections() const;
  [[nodiscard]] Counters counters() const;
  /// Who waits for which key now, at most kStoreWaitsMax. Visits every connection.
  [[nodiscard]] std::vector<StoreWait> waits() const;

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace ddprun::store
