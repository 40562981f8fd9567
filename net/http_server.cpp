#include "net/http_server.hpp"

#include <fcntl.h>

#include <array>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <exception>
#include <set>
#include <utility>

#include "base/clock.hpp"

namespace ddprun::net {

namespace asio = boost::asio;
using asio::ip::tcp;

namespace {

constexpr auto kHttpAwait = asio::as_tuple(asio::use_awaitable);

void rethrow_http_bug(const std::exception_ptr& bug) {
  if (bug) std::rethrow_exception(bug);
}

/// Closed when its time is over, which ends what it waits for.
struct HttpSession {
  explicit HttpSession(tcp::socket accepted)
      : socket(std::move(accepted)), limit(socket.get_executor()) {}

  tcp::socket socket;
  asio::steady_timer limit;
  std::string received;
  std::string answer;
};

void close_in_time(const std::shared_ptr<HttpSession>& session) {
  session->limit.expires_after(kHttpTimeMax);
  session->limit.async_wait([weak = std::weak_ptr(session)](const auto& cancelled) {
    const auto late = weak.lock();
    if (cancelled || !late) return;
    boost::system::error_code ignored;  // it is closed either way
    late->socket.close(ignored);
  });
}

}  // namespace

class HttpServer::Impl : public std::enable_shared_from_this<Impl> {
 public:
  Impl(tcp::acceptor listener, std::string pages, Respond respond)
      : listener_(std::move(listener)),
        room_(listener_.get_executor(), TimePoint::max()),
        pause_(listener_.get_executor()),
        pages_(std::move(pages)),
        respond_(std::move(respond)) {}

  static asio::awaitable<void> accept(std::shared_ptr<Impl> self);
  void close();
  [[nodiscard]] asio::any_io_executor executor() { return listener_.get_executor(); }

 private:
  static asio::awaitable<void> serve(std::shared_ptr<Impl> self,
                                     std::shared_ptr<HttpSession> session);
  static asio::awaitable<void> read(std::shared_ptr<Impl> self,
                                    std::shared_ptr<HttpSession> session);
  [[nodiscard]] std::string answer_to(const HttpRequest& request) const;

  tcp::acceptor listener_;
  asio::steady_timer room_;   // never expires by itself: cancelled when a session ends
  asio::steady_timer pause_;  // runs only while the process has no descriptor left
  std::string pages_;
  Respond respond_;  // empty: closed
  std::set<std::shared_ptr<HttpSession>> sessions_;
};

asio::awaitable<void> HttpServer::Impl::accept(std::shared_ptr<Impl> self) {
  while (self->respond_) {
    if (self->sessions_.size() >= kHttpConnectionsMax) {
      const auto [freed] = co_await self->room_.async_wait(kHttpAwait);
      static_cast<void>(freed);  // the only way it completes
      continue;
    }
    auto [failed, socket] = co_await self->listener_.async_accept(kHttpAwait);
    if (!self->respond_) co_return;
    if (failed) {
      self->pause_.expires_after(kHttpAcceptPause);
      const auto [over] = co_await self->pause_.async_wait(kHttpAwait);
      static_cast<void>(over);
      continue;
    }
    ::fcntl(socket.native_handle(), F_SETFD, FD_CLOEXEC);
    auto session = std::make_shared<HttpSession>(std::move(socket));
    self->sessions_.insert(session);
    asio::co_spawn(self->executor(), serve(self, session), rethrow_http_bug);
  }
}

asio::awaitable<void> HttpServer::Impl::serve(std::shared_ptr<Impl> self,
                                              std::shared_ptr<HttpSession> session) {
  close_in_time(session);
  co_await read(self, session);
  if (!session->answer.empty()) {
    const auto [unwritten, bytes] =
        co_await asio::async_write(session->socket, asio::buffer(session->answer), kHttpAwait);
    static_cast<void>(unwritten);  // who does not read its answer does not get it
    static_cast<void>(bytes);
    boost::system::error_code ignored;
    session->socket.shutdown(tcp::socket::shutdown_send, ignored);
  }
  session->limit.cancel();
  self->sessions_.erase(session);
  self->room_.cancel();
}

/// Until the request is complete, too long, or the client has gone.
asio::awaitable<void> HttpServer::Impl::read(std::shared_ptr<Impl> self,
                                             std::shared_ptr<HttpSession> session) {
  std::array<char, 2048> buffer{};
  while (session->answer.empty()) {
    const auto [failed, size] =
        co_await session->socket.async_read_some(asio::buffer(buffer), kHttpAwait);
    if (failed || !self->respond_) co_return;
    session->received.append(buffer.data(), size);
    const auto request = read_http_request(session->received);
    if (request) session->answer = self->answer_to(*request);
  }
}

std::string HttpServer::Impl::answer_to(const HttpRequest& request) const {
  std::string whole = request.code == 200 ? respond_(request) : http_refusal(request.code, pages_);
  if (request.part == Part::kHead) whole.resize(head_of(whole).size());
  return whole;
}

void HttpServer::Impl::close() {
  respond_ = {};
  boost::system::error_code ignored;  // it is closed either way
  listener_.close(ignored);
  room_.cancel();
  pause_.cancel();
  for (const auto& session : sessions_) {
    session->socket.close(ignored);
    session->limit.cancel();
  }
}

HttpServer::HttpServer(tcp::acceptor listener, std::string pages, Respond respond)
    : impl_(std::make_shared<Impl>(std::move(listener), std::move(pages), std::move(respond))) {
  asio::co_spawn(impl_->executor(), Impl::accept(impl_), rethrow_http_bug);
}

HttpServer::~HttpServer() {
  impl_->close();
}

}  // namespace ddprun::net
