// Reactor: what the TCP servers have in common. A listener and its connections in a level-triggered
// epoll set of their own, which is itself one descriptor of the io_context: a request of a busy
// client costs two system calls, recv and send, and a batch of clients shares the others. A
// connection has no pending asynchronous operation, so destroying a server means closing
// descriptors, and everything received can be read before a timer fires (drain()).
//
// A turn is short: events that are left of a batch when its time is over come first in the next
// one, so that a peer of this reactor does not delay those of another, and each connection that is
// ready is served once before any is served twice.
//
// When the process runs out of descriptors or memory, the listener is not polled until a connection
// is closed (resume_accepting()) or a second has passed. Thread rule: the io_context's thread.
// Ownership: a member of its Handler, which pending operations keep alive.
#pragma once

#include <sys/epoll.h>

#include <array>
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "base/clock.hpp"
#include "base/result.hpp"
#include "net/connection.hpp"

namespace ddprun::net {

// EPOLLIN and its like are enumerators; as integers they combine into a set of events.
inline constexpr std::uint32_t kReadable = EPOLLIN;
inline constexpr std::uint32_t kWritable = EPOLLOUT;
inline constexpr std::uint32_t kPeerEnded = EPOLLRDHUP;
inline constexpr std::uint32_t kGone = EPOLLHUP | EPOLLERR;

/// After this the other work of the io_context has its turn, though an event is never interrupted.
inline constexpr std::chrono::microseconds kTurnTime{200};
/// Those who are connected come before those who connect: new connections per event of a listener.
inline constexpr int kAcceptsPerEvent = 4;
inline constexpr int kEventsPerBatch = 256;

class Reactor {
 public:
  /// What the events of a turn leave for it.
  enum class Turn { kMayContinue, kIsUsedUp };
  /// The server. It may close the reactor in any of these calls.
  class Handler {
   public:
    /// Takes ownership of the accepted socket, which is non-blocking and CLOEXEC.
    virtual void on_accept(int socket, const sockaddr_storage& from) = 0;
    /// `id`: of a connection, which may have been closed since the event was fetched, or may not
    /// want it any more.
    virtual void on_event(std::uint64_t id, std::uint32_t events) = 0;
    /// After each batch, and each part of one. kIsUsedUp: the other work of the io_context comes
    /// before the next batch.
    virtual Turn on_batch_end() = 0;
    /// Connections cannot be accepted; once until the backlog is empty again.
    virtual void on_exhausted(const std::string& why) = 0;

   protected:
    ~Handler() = default;
  };

  explicit Reactor(const boost::asio::any_io_executor& executor);
  /// Same as close().
  ~Reactor() { close(); }
  Reactor(const Reactor&) = delete;
  Reactor& operator=(const Reactor&) = delete;

  /// Takes ownership of `listener`, which is already listening; accepted sockets inherit the
  /// options of set_inherited_options(). Before start(), at most once.
  void listen(boost::asio::ip::tcp::acceptor listener);
  /// Call once. Fails with kSystem if the process is out of descriptors; `what` is served here.
  [[nodiscard]] Result<void> start(const std::shared_ptr<Handler>& handler,
                                   const std::string& what);
  /// Handles the events that are there now, of as many connections. The kernel reports ready ones
  /// in turn, so a peer that floods does not make this longer.
  void drain(std::size_t connections);
  /// Reports `events` of this connection from now on. False: out of memory.
  bool watch(Connection& connection, std::uint32_t events) {
    return connection.interest == events || watch_changed(connection, events);
  }
  void unwatch(Connection& connection);
  /// Call when a descriptor may have become free. Cheap while accepting.
  void resume_accepting();
  /// Whether events that the kernel has told of at once are left for the next turn.
  [[nodiscard]] bool is_amid_batch() const { return next_ < fetched_; }
  /// Closes the listener, and reports nothing any more.
  void close();

  /// For the log, in on_exhausted().
  [[nodiscard]] std::string exhausted_text(const std::string& why, std::size_t connections) const;
  [[nodiscard]] bool is_open() const { return epoll_.is_open(); }
  /// 0.0.0.0:0 without a listener. Valid after close().
  [[nodiscard]] const boost::asio::ip::tcp::endpoint& endpoint() const { return endpoint_; }

 private:
  void arm(std::shared_ptr<Handler> handler);
  void take_turn(Handler& handler);
  /// Of the batch at hand, or else of the next one; returns the number of handled events.
  int handle_some(Handler& handler, TimePoint until);
  void accept_some(Handler& handler);
  void pause_accepting(Handler& handler, const std::string& why);
  bool watch_changed(Connection& connection, std::uint32_t events);
  bool control(int operation, int fd, std::uint64_t id, std::uint32_t events);

  boost::asio::posix::stream_descriptor epoll_;  // owns the set
  std::weak_ptr<Handler> handler_;
  boost::asio::ip::tcp::endpoint endpoint_;
  int listener_ = -1;
  std::array<epoll_event, kEventsPerBatch> batch_{};
  int fetched_ = 0;     // events of the batch at hand
  int next_ = 0;        // the first of them that is not handled
  int events_max_ = 1;  // the most that are handled at once
  bool accepting_ = false;
  bool reported_ = false;                  // on_exhausted() was called
  boost::asio::steady_timer retry_timer_;  // runs only while accepting is paused
};

}  // namespace ddprun::net
