// The c10d store as a TCP server: unmodified PyTorch clients of 1.9 to 2.15 meet in it. The shell
// around wire (bytes) and Store (decisions): it owns the listening socket and every connection.
//
// Thread rule: everything on the one thread of the executor's io_context. A Server may be destroyed
// at any time on that thread, with connections live and outside its own log calls; many may exist
// one after another or side by side. It never looks up a name, never waits for a peer, and needs no
// timer while all is well.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "base/result.hpp"
#include "rendezvous/store/limits.hpp"

struct sockaddr_storage;

namespace spdlog {
class logger;
}

namespace ddprun::store {

struct ServerOptions {
  Limits limits;
  /// Told once per cause and peer why a connection was refused or closed; null: silence.
  std::shared_ptr<spdlog::logger> log;
};

/// What a store holds now.
struct Counters {
  std::size_t connections = 0;
  std::size_t keys = 0;   // queues not included
  std::size_t waits = 0;  // (connection, name) pairs
  std::size_t bytes = 0;  // of what Limits::store_bytes bounds
};

class Server {
 public:
  /// Takes over `listener`, which listens already (net::listen): clients may connect from then on
  /// and are served after start().
  Server(boost::asio::any_io_executor executor, boost::asio::ip::tcp::acceptor listener,
         ServerOptions options);
  /// A store without a port of its own: its clients are those that adopt() brings.
  Server(boost::asio::any_io_executor executor, ServerOptions options);
  /// As close().
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  /// Begins to serve. Once only. Fails with kSystem when the process has no descriptor left.
  [[nodiscard]] Result<void> start();
  /// Serves a connection that somebody else accepted and read `received` from. Takes over `socket`,
  /// which must be non-blocking and CLOEXEC. After start() only.
  void adopt(int socket, const sockaddr_storage& from, std::string_view received);
  /// Closes the listening socket and every connection at once; clients blocked in the store notice
  /// within milliseconds. Nothing is served afterwards. Harmless when repeated.
  void close();

  /// The address the store listens on, with the real port; 0.0.0.0:0 without a port of its own.
  /// Stays readable after close().
  [[nodiscard]] boost::asio::ip::tcp::endpoint endpoint() const;
  [[nodiscard]] std::uint16_t port() const { return endpoint().port(); }
  /// Connections open now.
  [[nodiscard]] std::size_t connections() const;
  [[nodiscard]] Counters counters() const;

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace ddprun::store
