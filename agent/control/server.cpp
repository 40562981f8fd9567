#include "agent/control/server.hpp"

#include <sys/socket.h>
#include <unistd.h>

#include <boost/asio/buffer.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/write.hpp>
#include <optional>
#include <utility>

#include "agent/control/limits.hpp"
#include "agent/control/request.hpp"
#include "net/bounded_sessions.hpp"

namespace ddprun::control {

namespace asio = boost::asio;
using Protocol = asio::local::stream_protocol;
using Sessions = net::BoundedSessions<Protocol>;

namespace {

std::optional<Peer> peer_of(Protocol::socket& socket) {
  ucred credentials{};
  socklen_t size = sizeof(credentials);
  const int failed =
      ::getsockopt(socket.native_handle(), SOL_SOCKET, SO_PEERCRED, &credentials, &size);
  if (failed != 0) return std::nullopt;
  return Peer{credentials.pid, credentials.uid};
}

}  // namespace

class Server::Impl {
 public:
  explicit Impl(Target& target) : target_(&target) {}

  static asio::awaitable<void> serve(std::shared_ptr<Impl> self, Sessions::Session session);
  void close() { target_ = nullptr; }

 private:
  /// Empty: the stacks are the answer.
  [[nodiscard]] std::string answer(const std::string& line, const Peer& peer);

  Target* target_;  // null: closed
};

asio::awaitable<void> Server::Impl::serve(std::shared_ptr<Impl> self, Sessions::Session session) {
  net::close_after(session, kRequestMax);
  std::string line;
  auto buffer = asio::dynamic_buffer(line, kRequestBytesMax);
  const auto [unread, size] =
      co_await asio::async_read_until(session->socket, buffer, '\n', net::kAwaitTuple);
  const auto peer = unread ? std::nullopt : peer_of(session->socket);
  // The directory keeps other users out; root may enter any.
  const bool allowed = peer && (peer->user == ::geteuid() || peer->user == 0);
  if (!allowed || self->target_ == nullptr) co_return;
  line.resize(size - 1);
  std::string text = self->answer(line, *peer);
  if (text.empty()) {
    const std::string stacks = co_await self->target_->stacks();
    text = encode_done(stacks);
  }
  net::close_after(session, kRequestMax);
  const auto [unwritten, bytes] =
      co_await asio::async_write(session->socket, asio::buffer(text), net::kAwaitTuple);
  static_cast<void>(unwritten);  // who does not read its answer does not get it
  static_cast<void>(bytes);
}

std::string Server::Impl::answer(const std::string& line, const Peer& peer) {
  const auto request = parse_request(line);
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

Server::Server(const asio::any_io_executor& executor, int descriptor, Target& target)
    : impl_(std::make_shared<Impl>(target)) {
  sessions_ = std::make_shared<Sessions>(
      Protocol::acceptor(executor, Protocol(), descriptor),
      net::SessionLimits{kConnectionsMax, kAcceptPause},
      [impl = impl_](const Sessions::Session& session) { return Impl::serve(impl, session); });
  sessions_->start();
}

Server::~Server() {
  impl_->close();
  sessions_->close();
}

}  // namespace ddprun::control
