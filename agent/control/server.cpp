#include "agent/control/server.hpp"

#include <sys/socket.h>
#include <unistd.h>

#include <boost/asio/buffer.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/write.hpp>
#include <chrono>
#include <optional>
#include <utility>
#include <vector>

#include "base/message_line.hpp"
#include "net/bounded_sessions.hpp"

namespace ddprun::control {

namespace asio = boost::asio;
using Protocol = asio::local::stream_protocol;
using Sessions = net::BoundedSessions<Protocol>;

namespace {

// How long accepting pauses when the process has no descriptor left.
constexpr std::chrono::seconds kAcceptPause{1};

std::optional<Peer> peer_of(Protocol::socket& socket) {
  ucred credentials{};
  socklen_t size = sizeof(credentials);
  const int failed =
      ::getsockopt(socket.native_handle(), SOL_SOCKET, SO_PEERCRED, &credentials, &size);
  if (failed != 0) return std::nullopt;
  return Peer{credentials.pid, credentials.uid};
}

}  // namespace

class ControlSocket::Impl {
 public:
  explicit Impl(Target& target) : target_(&target) {}

  static asio::awaitable<void> serve(std::shared_ptr<Impl> self, Sessions::Session session);
  void close() { target_ = nullptr; }
  void tell(const std::string& outcome);

 private:
  /// Empty: the stacks are the answer.
  [[nodiscard]] std::string answer(const Request& request, const Peer& peer);

  Target* target_;                          // null: closed
  std::vector<Sessions::Session> waiting_;  // for the outcome
};

asio::awaitable<void> ControlSocket::Impl::serve(std::shared_ptr<Impl> self,
                                                 Sessions::Session session) {
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
  const auto request = parse_request(line);
  std::string text =
      request ? self->answer(*request, *peer) : encode_refused(request.error().sentence);
  if (text.empty()) {
    const std::string stacks = co_await self->target_->stacks();
    text = encode_done(stacks);
  }
  net::close_after(session, kRequestMax);
  const auto [unwritten, bytes] =
      co_await asio::async_write(session->socket, asio::buffer(text), net::kAwaitTuple);
  static_cast<void>(bytes);
  const bool waits = request && request->waits;
  if (unwritten || !waits) co_return;  // who does not read its answer does not get it
  self->waiting_.push_back(session);
  session->limit.cancel();  // a run takes the time that its ranks need to end
  char extra = 0;
  const auto gone = boost::asio::buffer(&extra, 1);
  const auto [ended, ignored] = co_await session->socket.async_read_some(gone, net::kAwaitTuple);
  static_cast<void>(ended);  // the client has gone, or this server
  static_cast<void>(ignored);
  std::erase(self->waiting_, session);
}

// Its buffer is empty: the answer before it was read, or this one is not either.
void ControlSocket::Impl::tell(const std::string& outcome) {
  for (const Sessions::Session& session : waiting_) {
    const int socket = session->socket.native_handle();
    const ssize_t sent =
        ::send(socket, outcome.data(), outcome.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    static_cast<void>(sent);  // who does not read it does not get it
  }
}

std::string ControlSocket::Impl::answer(const Request& request, const Peer& peer) {
  using Reach = Target::Reach;
  switch (request.command) {
    case Command::kStatus:
      return to_json(target_->status());
    case Command::kSignal: {
      const auto done = target_->signal_workers(request.signal, request.force, peer);
      return done ? encode_done(*done) : encode_refused(done.error().sentence);
    }
    case Command::kStop:
      target_->stop(peer, request.all_nodes ? Reach::kAllNodes : Reach::kThisNode);
      return encode_done("stopping");
    case Command::kStacks:
      return {};
  }
  return encode_refused("unknown");
}

void ControlSocket::open(const Environment& environment) {
  if (std::exchange(opened_, true)) return;
  const auto listener = std::make_shared<std::optional<Result<Listener>>>();
  const std::string text = about(target_.status());
  disk_.post([listener, environment, text] { *listener = listen(environment, text); },
             [this, listener, closed = closed_] {
               if (!*closed) return serve(**listener);
               if (!**listener) return;
               ::close((**listener)->descriptor);
               remove((**listener)->path);
             });
}

void ControlSocket::serve(const Result<Listener>& listener) {
  if (!listener) {
    logger_.info(note_line("CONTROL", "ddprun ps and other commands do not see this run: " +
                                          listener.error().sentence));
    return;
  }
  path_ = listener->path;
  impl_ = std::make_shared<Impl>(target_);
  sessions_ = std::make_shared<Sessions>(
      Protocol::acceptor(disk_.executor(), Protocol(), listener->descriptor),
      net::SessionLimits{kConnectionsMax, kAcceptPause},
      [impl = impl_](const Sessions::Session& session) { return Impl::serve(impl, session); });
  sessions_->start();
}

void ControlSocket::tell(const Outcome& outcome) {
  if (impl_) impl_->tell(encode(outcome));
}

void ControlSocket::close() {
  if (std::exchange(*closed_, true)) return;
  // First: a client whose connection is reset sees by it that the run has ended.
  if (!path_.empty()) remove(path_);
  if (impl_) {
    impl_->close();
    sessions_->close();
  }
}

}  // namespace ddprun::control
