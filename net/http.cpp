#include "net/http.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/write.hpp>
#include <climits>
#include <utility>

#include "base/address.hpp"
#include "net/bounded_sessions.hpp"

namespace ddprun::net {

namespace asio = boost::asio;
using asio::ip::tcp;

namespace {

constexpr std::string_view kPlainText = "text/plain; charset=utf-8";

/// "/status" from "http://host:port/status?x=1", as sent to a proxy, and from "/status?x=1".
std::string_view path_of(std::string_view target) {
  constexpr std::string_view kScheme = "http://";
  if (target.starts_with(kScheme)) {
    const auto path = target.find('/', kScheme.size());
    target = path == std::string_view::npos ? "/" : target.substr(path);
  }
  return target.substr(0, target.find('?'));
}

HttpRequest parse(std::string_view head) {
  const std::string_view line = head.substr(0, head.find_first_of("\r\n"));
  const auto first = line.find(' ');
  const auto last = line.rfind(' ');
  const bool is_http = first != last && line.substr(last + 1).starts_with("HTTP/1.");
  if (!is_http) return {400, "", Part::kWhole};
  const std::string_view method = line.substr(0, first);
  if (method != "GET" && method != "HEAD") return {405, "", Part::kWhole};
  const std::string_view path = path_of(line.substr(first + 1, last - first - 1));
  return {200, std::string(path), method == "HEAD" ? Part::kHead : Part::kWhole, head};
}

}  // namespace

std::optional<HttpRequest> read_http_request(std::string_view received) {
  const auto end = std::min(received.find("\r\n\r\n"), received.find("\n\n"));
  if (end > kHttpHeadBytesMax && received.size() > kHttpHeadBytesMax) {
    return HttpRequest{431, "", Part::kWhole};
  }
  if (end == std::string_view::npos) return std::nullopt;
  return parse(received.substr(0, end + 1));
}

std::string header_value(std::string_view head, std::string_view name) {
  std::string text(head);
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char letter) {
    return static_cast<char>(letter >= 'A' && letter <= 'Z' ? letter + ('a' - 'A') : letter);
  });
  const std::string start = "\n" + std::string(name) + ":";
  const auto at = text.find(start);
  if (at == std::string::npos) return "";
  const auto from = text.find_first_not_of(" \t", at + start.size());
  if (from == std::string::npos) return "";
  const auto end = text.find_first_of("\r\n", from);
  std::string value = text.substr(from, end == std::string::npos ? end : end - from);
  value.erase(value.find_last_not_of(" \t") + 1);
  return value;
}

namespace {

/// "[::1]:80" without the port; empty if what follows the host is no port.
std::string without_port(std::string_view host) {
  const bool is_literal = host.starts_with('[');
  const auto end = is_literal ? host.find(']') : host.find(':');
  if (end == std::string_view::npos) return is_literal ? "" : std::string(host);
  const std::size_t size = is_literal ? end + 1 : end;
  const std::string_view port = host.substr(size);
  const bool is_port =
      port.empty() || (port.front() == ':' && port.find_first_not_of("0123456789", 1) == port.npos);
  return is_port ? std::string(host.substr(0, size)) : "";
}

}  // namespace

bool is_asked_by_own_name(std::string_view head, const std::string& own_name) {
  const std::string given = header_value(head, "host");
  if (given.empty()) return true;
  const std::string host = without_port(given);
  if (host.starts_with('[')) {
    return ipv6_of(host.substr(1, host.size() - 2)).has_value();
  }
  if (host == "localhost" || ipv4_of(host)) return true;
  // As header_value() writes it.
  const std::string own = header_value("\nhost:" + own_name, "host");
  return !own.empty() && (host == own || host == own.substr(0, own.find('.')));
}

std::string own_host_name() {
  std::array<char, HOST_NAME_MAX + 1> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

std::string http_response(std::string_view status, std::string_view type, std::string_view body) {
  std::string text = "HTTP/1.1 ";
  text.append(status).append("\r\nServer: ddprun\r\nConnection: close\r\n");
  text.append("Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n");
  if (status.starts_with("405")) text.append("Allow: GET, HEAD\r\n");
  text.append("Content-Length: ").append(std::to_string(body.size()));
  return text.append("\r\nContent-Type: ").append(type).append("\r\n\r\n").append(body);
}

std::string http_refusal(int code, std::string_view pages) {
  switch (code) {
    case 404:
      return http_response("404 Not Found", kPlainText,
                           "This server has " + std::string(pages) + ".\n");
    case 405:
      return http_response("405 Method Not Allowed", kPlainText,
                           "This server supports only GET and HEAD.\n");
    case 421:
      return http_response("421 Misdirected Request", kPlainText,
                           "Ask by an address, or by the host name of this machine.\n");
    case 431:
      return http_response("431 Request Header Fields Too Large", kPlainText,
                           "The request headers are too long.\n");
    default:
      return http_response("400 Bad Request", kPlainText, "This is not an HTTP request.\n");
  }
}

std::string_view head_of(std::string_view response) {
  constexpr std::string_view kEnd = "\r\n\r\n";
  return response.substr(0, response.find(kEnd) + kEnd.size());
}

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
