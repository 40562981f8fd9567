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

#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <array>
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "base/result.hpp"

namespace ddprun::net {

/// An accepted socket of a server, which it owns.
struct Connection {
  Connection(std::uint64_t number, int socket, const sockaddr_storage& peer);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  std::uint64_t id;
  int fd;
  std::uint32_t interest = 0;  // events that the reactor reports; 0: it does not watch this socket
  sockaddr_in6 from{};         // holds a sockaddr_in for IPv4
};

/// Numeric, without port; an IPv4-mapped IPv6 address is written as IPv4.
[[nodiscard]] std::string address_text(const sockaddr_in6& address);
/// "10.0.0.7:40112", "[fd00::7]:40112".
[[nodiscard]] std::string peer_text(const Connection& connection);

/// Which causes were logged for which address, so that one peer cannot fill the log.
class LoggedCauses {
 public:
  /// Whether this is new; remembers it. Memory is bounded: after many causes it begins again.
  [[nodiscard]] bool is_new(const Connection& connection, const std::string& cause);

 private:
  std::unordered_set<std::string> logged_;
};

/// Finds a connection by the id that the events of a Reactor carry. Entry: derives from Connection.
/// Pointers stay valid until erase().
template <class Entry>
class ConnectionTable {
 public:
  template <class... Arguments>
  Entry& add(int socket, const sockaddr_storage& from, Arguments&&... more) {
    if (free_.empty()) {
      free_.push_back(static_cast<std::uint32_t>(entries_.size()));
      entries_.emplace_back();
    }
    const std::uint32_t slot = free_.back();
    const std::uint64_t id = std::uint64_t{++added_} << 32 | slot;  // grows, and is never reused
    entries_[slot] = std::make_unique<Entry>(id, socket, from, std::forward<Arguments>(more)...);
    free_.pop_back();
    ++size_;
    return *entries_[slot];
  }
  /// Null if it was erased.
  [[nodiscard]] Entry* find(std::uint64_t id) const {
    const auto slot = static_cast<std::uint32_t>(id);
    if (slot >= entries_.size() || entries_[slot] == nullptr) return nullptr;
    return entries_[slot]->id == id ? entries_[slot].get() : nullptr;
  }
  void erase(std::uint64_t id) {
    if (find(id) == nullptr) return;
    const auto slot = static_cast<std::uint32_t>(id);
    entries_[slot].reset();
    free_.push_back(slot);
    --size_;
  }
  void clear() {
    entries_.clear();
    free_.clear();
    size_ = 0;
  }
  template <class Visit>
  void for_each(Visit visit) const {
    for (const auto& entry : entries_) {
      if (entry != nullptr) visit(*entry);
    }
  }
  [[nodiscard]] std::size_t size() const { return size_; }

 private:
  std::vector<std::unique_ptr<Entry>> entries_;  // indexed by the low half of the id
  std::vector<std::uint32_t> free_;
  std::size_t size_ = 0;
  std::uint32_t added_ = 0;
};

enum class Sent { kAll, kSome, kBroken };

/// Sends from a queue with empty(), gather() and sent() as much as the socket accepts.
template <class Queue>
Sent send_all(int socket, Queue& queue) {
  while (!queue.empty()) {
    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-member-init): gather() fills it
    std::array<iovec, 64> parts;
    msghdr message{};
    message.msg_iov = parts.data();
    message.msg_iovlen = queue.gather(parts);
    const ssize_t count = message.msg_iovlen == 1  // the common case, and cheaper than sendmsg
                              ? ::send(socket, parts[0].iov_base, parts[0].iov_len, MSG_NOSIGNAL)
                              : ::sendmsg(socket, &message, MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return errno == EAGAIN ? Sent::kSome : Sent::kBroken;
    queue.sent(static_cast<std::size_t>(count));
  }
  return Sent::kAll;
}

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
