// BatchAcceptor: accepts pending connections in batches, for a server that keeps its sockets in its
// own epoll set. When the process runs out of descriptors or memory, it stops polling the listener
// instead of spinning, and resumes when the server closes a connection or after one second. Thread
// rule: the io_context's thread. Ownership: shared, because a timer may outlive the server; owns
// the listening socket, while the server owns the epoll set.
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
  /// Takes ownership of the accepted socket, which is non-blocking and CLOEXEC.
  using OnAccept = std::function<void(int socket, const sockaddr_storage& from)>;
  /// Called with the reason when connections cannot be accepted; once until the backlog is empty
  /// again.
  using OnExhausted = std::function<void(const std::string& why)>;

  /// `listener` is already listening; accepted sockets inherit the options of
  /// set_inherited_options().
  BatchAcceptor(boost::asio::any_io_executor executor, boost::asio::ip::tcp::acceptor listener,
                OnExhausted on_exhausted);
  /// Same as close().
  ~BatchAcceptor() { close(); }
  BatchAcceptor(const BatchAcceptor&) = delete;
  BatchAcceptor& operator=(const BatchAcceptor&) = delete;

  [[nodiscard]] const boost::asio::ip::tcp::endpoint& endpoint() const { return endpoint_; }
  /// Adds the listener to the epoll set `epoll` with `key` as its data. Call once.
  void start(int epoll, std::uint64_t key);
  /// Call when epoll reports the listener readable. Accepts a bounded batch; the listener stays
  /// readable while connections are pending.
  void accept_some(const OnAccept& on_accept);
  /// Call when a descriptor may have become free. Cheap while accepting.
  void resume();
  /// Closes the listener for good.
  void close();

 private:
  void pause(const std::string& why);
  void watch(std::uint32_t events);

  boost::asio::ip::tcp::endpoint endpoint_;
  boost::asio::steady_timer retry_timer_;  // runs only while paused
  OnExhausted on_exhausted_;
  int listener_;
  int epoll_ = -1;
  std::uint64_t key_ = 0;
  bool accepting_ = false;
  bool reported_ = false;
};

}  // namespace ddprun::net
