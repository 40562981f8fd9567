#include "net/http_server.hpp"

#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/write.hpp>
#include <utility>

#include "net/bounded_sessions.hpp"

namespace ddprun::net {

namespace asio = boost::asio;
using asio::ip::tcp;

class HttpServer::Impl {
 public:
  using Sessions = BoundedSessions<tcp>;

  Impl(std::string pages, Respond respond)
      : pages_(std::move(pages)), respond_(std::move(respond)) {}

  static asio::awaitable<void> serve(std::shared_ptr<Impl> self, Sessions::Session session);
  void close() { respond_ = {}; }

 private:
  [[nodiscard]] static asio::awaitable<std::string> answer(std::shared_ptr<Impl> self,
                                                           Sessions::Session session);
  [[nodiscard]] std::string answer_to(const HttpRequest& request) const;

  std::string pages_;
  Respond respond_;  // empty: closed
};

asio::awaitable<void> HttpServer::Impl::serve(std::shared_ptr<Impl> self,
                                              Sessions::Session session) {
  close_after(session, kHttpTimeMax);
  const std::string text = co_await answer(self, session);
  if (text.empty()) co_return;
  const auto [unwritten, bytes] =
      co_await asio::async_write(session->socket, asio::buffer(text), kAwaitTuple);
  static_cast<void>(unwritten);  // who does not read its answer does not get it
  static_cast<void>(bytes);
  boost::system::error_code ignored;
  session->socket.shutdown(tcp::socket::shutdown_send, ignored);
}

/// Once the request is complete or too long; empty: the client has gone.
asio::awaitable<std::string> HttpServer::Impl::answer(std::shared_ptr<Impl> self,
                                                      Sessions::Session session) {
  std::array<char, 2048> buffer{};
  std::string received;
  for (;;) {
    const auto [failed, size] =
        co_await session->socket.async_read_some(asio::buffer(buffer), kAwaitTuple);
    if (failed || !self->respond_) co_return std::string();
    received.append(buffer.data(), size);
    const auto request = read_http_request(received);
    if (request) co_return self->answer_to(*request);
  }
}

std::string HttpServer::Impl::answer_to(const HttpRequest& request) const {
  // What collects metrics may know this machine by a name of its own; it is no browser.
  const bool is_browser = !header_value(request.head, "accept-language").empty();
  const bool is_foreign = is_browser && !is_asked_by_own_name(request.head, own_host_name());
  const int code = request.code == 200 && is_foreign ? 421 : request.code;
  std::string whole = code == 200 ? respond_(request) : http_refusal(code, pages_);
  if (request.part == Part::kHead) whole.resize(head_of(whole).size());
  return whole;
}

HttpServer::HttpServer(tcp::acceptor listener, std::string pages, Respond respond)
    : impl_(std::make_shared<Impl>(std::move(pages), std::move(respond))),
      sessions_(std::make_shared<BoundedSessions<tcp>>(
          std::move(listener), SessionLimits{kHttpConnectionsMax, kHttpAcceptPause, true},
          [impl = impl_](const Impl::Sessions::Session& session) {
            return Impl::serve(impl, session);
          })) {
  sessions_->start();
}

HttpServer::~HttpServer() {
  impl_->close();
  sessions_->close();
}

}  // namespace ddprun::net
