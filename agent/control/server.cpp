#include "agent/control/server.hpp"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <exception>
#include <optional>
#include <set>
#include <utility>

#include "agent/control/limits.hpp"
#include "agent/control/request.hpp"

namespace ddprun::control {

namespace asio = boost::asio;
using Socket = asio::local::stream_protocol::socket;

namespace {

constexpr auto kAwait = asio::as_tuple(asio::use_awaitable);

void rethrow_defect(const std::exception_ptr& defect) {
  if (defect) std::rethrow_exception(defect);
}

std::optional<Peer> peer_of(Socket& socket) {
  ucred credentials{};
  socklen_t size = sizeof(credentials);
  const int failed =
      ::getsockopt(socket.native_handle(), SOL_SOCKET, SO_PEERCRED, &credentials, &size);
  if (failed != 0) return std::nullopt;
  return Peer{credentials.pid, credentials.uid};
}

/// One connection: closed when its time is over, which ends what it waits for.
struct Session {
  explicit Session(Socket accepted) : socket(std::move(accepted)), limit(socket.get_executor()) {}

  Socket socket;
  asio::steady_timer limit;
  std::string request;
};

void close_after(const std::shared_ptr<Session>& session, std::chrono::seconds time) {
  session->limit.expires_after(time);
  session->limit.async_wait([weak = std::weak_ptr(session)](const auto& cancelled) {
    const auto late = weak.lock();
    if (cancelled || !late) return;
    boost::system::error_code ignored;  // nothing is left to do about it
    late->socket.close(ignored);
  });
}

}  // namespace

class Server::Impl : public std::enable_shared_from_this<Impl> {
 public:
  Impl(const asio::any_io_executor& executor, int descriptor, Target& target)
      : acceptor_(executor, asio::local::stream_protocol(), descriptor),
        room_(executor, TimePoint::max()),
        pause_(executor),
        target_(&target) {}

  static asio::awaitable<void> accept(std::shared_ptr<Impl> self);
  void close();

 private:
  static asio::awaitable<void> serve(std::shared_ptr<Impl> self, std::shared_ptr<Session> session);
  /// Empty: the stacks are the answer.
  [[nodiscard]] std::string answer(const Session& session, const Peer& peer);

  asio::local::stream_protocol::acceptor acceptor_;
  asio::steady_timer room_;   // never expires by itself: cancelled when a session ends
  asio::steady_timer pause_;  // runs only while the process has no descriptor left
  Target* target_;            // null: closed
  std::set<std::shared_ptr<Session>> sessions_;
};

asio::awaitable<void> Server::Impl::accept(std::shared_ptr<Impl> self) {
  while (self->target_ != nullptr) {
    if (self->sessions_.size() >= kConnectionsMax) {
      const auto [freed] = co_await self->room_.async_wait(kAwait);
      static_cast<void>(freed);  // the only way it completes
      continue;
    }
    auto [failed, socket] = co_await self->acceptor_.async_accept(kAwait);
    if (self->target_ == nullptr) co_return;
    if (failed) {
      self->pause_.expires_after(kAcceptPause);
      const auto [over] = co_await self->pause_.async_wait(kAwait);
      static_cast<void>(over);
      continue;
    }
    ::fcntl(socket.native_handle(), F_SETFD, FD_CLOEXEC);
    auto session = std::make_shared<Session>(std::move(socket));
    self->sessions_.insert(session);
    asio::co_spawn(self->acceptor_.get_executor(), serve(self, session), rethrow_defect);
  }
}

asio::awaitable<void> Server::Impl::serve(std::shared_ptr<Impl> self,
                                          std::shared_ptr<Session> session) {
  close_after(session, kRequestMax);
  auto buffer = asio::dynamic_buffer(session->request, kRequestBytesMax);
  const auto [unread, size] =
      co_await asio::async_read_until(session->socket, buffer, '\n', kAwait);
  const auto peer = unread ? std::nullopt : peer_of(session->socket);
  // The directory keeps other users out; root may enter any.
  const bool allowed = peer && (peer->user == ::geteuid() || peer->user == 0);
  if (allowed && self->target_ != nullptr) {
    session->request.resize(size - 1);
    std::string text = self->answer(*session, *peer);
    if (text.empty()) {
      const std::string stacks = co_await self->target_->stacks();
      text = encode_done(stacks);
    }
    close_after(session, kRequestMax);
    const auto [unwritten, bytes] =
        co_await asio::async_write(session->socket, asio::buffer(text), kAwait);
    static_cast<void>(unwritten);  // who does not read its answer does not get it
    static_cast<void>(bytes);
  }
  session->limit.cancel();
  self->sessions_.erase(session);
  self->room_.cancel();
}

std::string Server::Impl::answer(const Session& session, const Peer& peer) {
  const auto request = parse_request(session.request);
  if (!request) return encode_refused(request.error().sentence);
  switch (request->command) {
    case Command::kStatus:
      return to_json(target_->status());
    case Command::kSignal:
      return encode_done(target_->signal_workers(request->signal, peer));
    case Command::kStop:
      target_->stop(peer);
      return encode_done("stopping");
    case Command::kStacks:
      return {};
  }
  return encode_refused("unknown");
}

void Server::Impl::close() {
  target_ = nullptr;
  boost::system::error_code ignored;  // it is closed either way
  acceptor_.close(ignored);
  room_.cancel();
  pause_.cancel();
  for (const auto& session : sessions_) {
    session->socket.close(ignored);
    session->limit.cancel();
  }
}

Server::Server(const asio::any_io_executor& executor, int descriptor, Target& target)
    : impl_(std::make_shared<Impl>(executor, descriptor, target)) {
  asio::co_spawn(executor, Impl::accept(impl_), rethrow_defect);
}

Server::~Server() {
  impl_->close();
}

}  // namespace ddprun::control
