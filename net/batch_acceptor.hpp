// BatchAcceptor: lets in whoever waits at a listener, a batch at a time, for a server that keeps
// its sockets in an epoll set of its own. Out of descriptors or memory it looks away instead of
// spinning, and looks again when the server says that one became free, or after a second. Thread
// rule: the io_context's thread. Ownership: shared, because a timer may outlive the server; owns
// the listening socket, the server owns the set.
#pragma once

#include <sys/socket.h>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace ddprun::net {

class BatchAcceptor : public std::enable_shared_from_this<BatchAcceptor> {
 public:
  /// Gets a connection: the descriptor is its own now, non-blocking and CLOEXEC.
  using Take = std::function<void(int socket, const sockaddr_storage& from)>;
  /// Told why nobody can be accepted, once until everybody who waited is in.
  using Exhausted = std::function<void(const std::string& why)>;

  /// `listener` listens already; connections inherit what set_inherited_options gives it.
  BatchAcceptor(boost::asio::any_io_executor executor, boost::asio::ip::tcp::acceptor listener,
                Exhausted exhausted);
  /// As close().
  ~BatchAcceptor() { close(); }
  BatchAcceptor(const BatchAcceptor&) = delete;
  BatchAcceptor& operator=(const BatchAcceptor&) = delete;

  [[nodiscard]] const boost::asio::ip::tcp::endpoint& endpoint() const { return endpoint_; }
  /// Puts the listener into the set `epoll`, under `key`. Once only.
  void start(int epoll, std::uint64_t key);
  /// Call it when the set says that the listener is readable. A batch is bounded; what is left
  /// makes the set say so again.
  void accept_some(const Take& take);
  /// A descriptor may be free again. Cheap when nothing was wrong.
  void resume();
  /// Closes the listener. Final.
  void close();

 private:
  void pause(const std::string& why);
  void watch(std::uint32_t events);

  boost::asio::ip::tcp::endpoint endpoint_;
  boost::asio::steady_timer again_;  // runs only while paused
  Exhausted exhausted_;
  int listener_;
  int epoll_ = -1;
  std::uint64_t key_ = 0;
  bool accepting_ = false;
  bool told_ = false;
};

}  // namespace ddprun::net
