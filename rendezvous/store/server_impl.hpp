// Implementation of Server: sockets, one epoll set and the calls into Parser and Store. Private to
// this room.
//
// Sessions are registered in a level-triggered epoll set, which is itself one descriptor of the
// io_context. A request of a busy client then costs two system calls, recv and send; a batch of
// clients shares the others. Sessions have no pending asynchronous operation, so destroying the
// server means closing descriptors. Thread rule: one thread.
#pragma once

#include <netinet/in.h>
#include <sys/epoll.h>

#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <memory>
#include <new>
#include <string>
#include <unordered_set>
#include <vector>

#include "net/batch_acceptor.hpp"
#include "rendezvous/store/replies.hpp"
#include "rendezvous/store/server.hpp"
#include "rendezvous/store/store.hpp"
#include "rendezvous/store/wire.hpp"

namespace ddprun::store {

/// Bytes per recv() from a session that is not in the middle of a long value.
inline constexpr std::size_t kReceiveBytes = 64 * 1024;

/// One connection. Owns no buffer while idle.
struct Session {
  Session(ConnectionId number, int socket, const sockaddr_storage& from, Budget& copied);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  ConnectionId id;
  int fd;
  std::uint32_t interest = EPOLLIN;  // registered epoll events
  Dialect dialect = Dialect::kUndecided;
  bool eof = false;     // the client has shut down its sending side
  bool paused = false;  // not read until the client drains its replies, or until its next turn
  bool queued = false;  // in Impl::to_flush_
  ReplyQueue replies;
  std::unique_ptr<Parser> parser;     // while a request is incomplete
  std::unique_ptr<std::string> held;  // received, unparsed bytes while paused
  sockaddr_in6 peer{};                // holds a sockaddr_in for IPv4
};

class Server::Impl : public std::enable_shared_from_this<Server::Impl> {
 public:
  Impl(boost::asio::any_io_executor executor, ServerOptions options);
  ~Impl();

  void listen(boost::asio::any_io_executor executor, boost::asio::ip::tcp::acceptor listener);
  Result<void> start();
  void close();
  [[nodiscard]] boost::asio::ip::tcp::endpoint endpoint() const;
  [[nodiscard]] std::size_t connections() const { return open_; }
  [[nodiscard]] Counters counters() const;
  void adopt(int socket, const sockaddr_storage& from, std::string_view received);
  void when_idle(std::function<void()> idle);

 private:
  /// How the handling of an event ended: the session lives on, or why it ends.
  enum class End { kAlive, kPeerClosed, kPeerReset, kOutOfMemory, kRefused };

  // server.cpp: lifetime of the server.
  void arm();
  void dispatch();
  ConnectionId admit(int socket, const sockaddr_storage& from);
  void log_exhausted(const std::string& why);
  void return_memory();
  void drop_spares_when_idle(std::size_t moves_before);
  void tell_idle();

  // server_sessions.cpp: lifetime of a session.
  void on_event(const epoll_event& event);
  /// Limits an out-of-memory condition to the session being served.
  template <class Work>
  End guarded(Work work) {
    try {
      return work();
    } catch (const std::bad_alloc&) {
      return End::kOutOfMemory;
    }
  }
  End receive(Session& session);
  End process_input(Session& session, std::string_view input);
  End parse(Session& session, Parser& parser, std::string_view input);
  End pause(Session& session, std::string_view rest);
  End resume(Session& session);
  End flush(Session& session);
  /// Whether serving pauses until the client has read its replies.
  [[nodiscard]] bool is_backlogged(const Session& session, std::size_t unsent_max) const;
  void wake_up(const std::vector<ConnectionId>& woken);
  void settle(Session& session, End end);
  void flush_queued();
  void watch(Session& session);
  Session* find(ConnectionId id);
  void end_session(Session& session, End end);
  void log_end(const Session& session, End end);
  void log_once(const std::string& peer, const std::string& cause, const std::string& line);

  ServerOptions options_;
  std::shared_ptr<net::BatchAcceptor> acceptor_;  // null if there is no listener
  boost::asio::posix::stream_descriptor epoll_;   // owns the epoll set
  bool dropping_spares_ = false;
  boost::asio::steady_timer drop_spares_;  // runs only while memory_ keeps spare blocks
  bool closed_ = false;
  bool session_quota_used_ = false;  // set when a session used up its quota in this dispatch

  Memory memory_;
  Budget copied_replies_;
  Store store_;
  std::unique_ptr<Parser> spare_parser_;
  std::unique_ptr<char[]> receive_buffer_;
  std::vector<std::unique_ptr<Session>> sessions_;  // indexed by the low half of the id
  std::vector<std::uint32_t> free_slots_;
  std::vector<ConnectionId> to_flush_;
  std::size_t open_ = 0;
  std::function<void()> when_idle_;  // empty unless asked for
  std::uint32_t accepted_ = 0;
  std::size_t memory_peak_ = 0;
  Refusal refusal_{Reason::kUnknownOpcode};  // valid after End::kRefused
  std::unordered_set<std::string> logged_;   // (peer, cause) pairs already logged
};

}  // namespace ddprun::store
