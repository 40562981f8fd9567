// BoundedSessions: accepts the connections of a small service and serves each on its own, a bounded
// number of them at a time and each for a bounded time. The owner's coroutine speaks with the
// client. Thread rule: the executor's thread. Ownership: shared by its coroutines, so it outlives
// close().
#pragma once

#include <fcntl.h>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>
#include <functional>
#include <list>
#include <memory>
#include <utility>

#include "base/clock.hpp"
#include "net/bugs.hpp"

namespace ddprun::net {

/// Completes with an error code instead of an exception.
inline constexpr auto kAwaitTuple = boost::asio::as_tuple(boost::asio::use_awaitable);

struct SessionLimits {
  std::size_t connections = 1;          // served at a time
  std::chrono::seconds accept_pause{};  // when the process has no descriptor left
  // What a client meets where all places are taken: it waits in the kernel's queue, or gets the
  // place of the one that has had its own for longest.
  bool oldest_gives_way = false;
};

/// One connection: closed when its time is over, which ends what it waits for.
template <class Protocol>
struct BoundedSession {
  using Socket = typename Protocol::socket;
  explicit BoundedSession(Socket accepted)
      : socket(std::move(accepted)), limit(socket.get_executor()) {}

  Socket socket;
  boost::asio::steady_timer limit;
};

/// Replaces the time that the session had.
template <class Protocol>
void close_after(const std::shared_ptr<BoundedSession<Protocol>>& session,
                 std::chrono::seconds time) {
  session->limit.expires_after(time);
  session->limit.async_wait([weak = std::weak_ptr(session)](const auto& cancelled) {
    const auto late = weak.lock();
    if (cancelled || !late) return;
    boost::system::error_code ignored;  // it is closed either way
    late->socket.close(ignored);
  });
}

template <class Protocol>
class BoundedSessions : public std::enable_shared_from_this<BoundedSessions<Protocol>> {
 public:
  using Acceptor = typename Protocol::acceptor;
  using Session = std::shared_ptr<BoundedSession<Protocol>>;
  /// Speaks with one client, from close_after() on; the connection is dropped when it completes.
  using Serve = std::function<boost::asio::awaitable<void>(Session session)>;

  BoundedSessions(Acceptor acceptor, SessionLimits limits, Serve serve)
      : acceptor_(std::move(acceptor)),
        limits_(limits),
        room_(acceptor_.get_executor(), TimePoint::max()),
        pause_(acceptor_.get_executor()),
        serve_(std::move(serve)) {}

  /// Once. Serves until close().
  void start() {
    boost::asio::co_spawn(acceptor_.get_executor(), accept(this->shared_from_this()), rethrow_bug);
  }
  /// Ends every session at once.
  void close() {
    closed_ = true;
    boost::system::error_code ignored;  // it is closed either way
    acceptor_.close(ignored);
    room_.cancel();
    pause_.cancel();
    for (const Session& session : sessions_) end(*session);
  }
  [[nodiscard]] bool closed() const { return closed_; }

 private:
  [[nodiscard]] bool is_full() const { return sessions_.size() >= limits_.connections; }
  static void end(BoundedSession<Protocol>& session) {
    boost::system::error_code ignored;  // it is closed either way
    session.socket.close(ignored);
    session.limit.cancel();
  }

  using Self = std::shared_ptr<BoundedSessions>;

  static boost::asio::awaitable<void> accept(Self self) {
    while (!self->closed_) {
      if (self->is_full() && !self->limits_.oldest_gives_way) {
        const auto [freed] = co_await self->room_.async_wait(kAwaitTuple);
        static_cast<void>(freed);  // the only way it completes
        continue;
      }
      auto [failed, socket] = co_await self->acceptor_.async_accept(kAwaitTuple);
      if (self->closed_) co_return;
      if (failed) {
        self->pause_.expires_after(self->limits_.accept_pause);
        const auto [over] = co_await self->pause_.async_wait(kAwaitTuple);
        static_cast<void>(over);
        continue;
      }
      ::fcntl(socket.native_handle(), F_SETFD, FD_CLOEXEC);
      Session session = std::make_shared<BoundedSession<Protocol>>(std::move(socket));
      if (self->is_full()) {
        end(*self->sessions_.front());
        self->sessions_.pop_front();
      }
      self->sessions_.push_back(session);
      boost::asio::co_spawn(self->acceptor_.get_executor(), run(self, session), rethrow_bug);
    }
  }

  static boost::asio::awaitable<void> run(Self self, Session session) {
    auto served = self->serve_(session);
    co_await std::move(served);
    session->limit.cancel();
    self->sessions_.remove(session);
    self->room_.cancel();
  }

  Acceptor acceptor_;
  SessionLimits limits_;
  boost::asio::steady_timer room_;   // never expires by itself: cancelled when a session ends
  boost::asio::steady_timer pause_;  // runs only while the process has no descriptor left
  Serve serve_;
  bool closed_ = false;
  std::list<Session> sessions_;  // the oldest first
};

}  // namespace ddprun::net
