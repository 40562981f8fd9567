// The subset of HTTP that ddprun's servers speak: one request per connection, no body, no
// keep-alive. Pure functions, whose input may be hostile and is at most kHttpHeadBytesMax long; and
// a small server.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace ddprun::net {

/// Size of the headers of a request; longer ones are answered with 431.
inline constexpr std::size_t kHttpHeadBytesMax = 8 * 1024;

/// The part of a response to send: HEAD has no body.
enum class Part { kWhole, kHead };

struct HttpRequest {
  int code = 200;    // otherwise the error of the request
  std::string path;  // without the query: "/status"
  Part part = Part::kWhole;
  std::string_view head = {};  // the lines of the request, in what was received
};

/// The value of the first header line of this name, in lower case; empty: there is none.
[[nodiscard]] std::string header_value(std::string_view head, std::string_view name);
/// Whether the header `Host` is an address, "localhost", `own_name` or its part before the first
/// dot, with or without a port; or there is none. A browser sends the name of the page's site: a
/// site whose name leads here by now (DNS rebinding) could otherwise read the pages.
[[nodiscard]] bool is_asked_by_own_name(std::string_view head, const std::string& own_name);
/// As gethostname() reports it; empty if it fails.
[[nodiscard]] std::string own_host_name();

/// nullopt while the request's headers are incomplete and not too long.
[[nodiscard]] std::optional<HttpRequest> read_http_request(std::string_view received);

/// A complete response, after which the connection is closed. `status`: "200 OK"; `type`: a media
/// type.
[[nodiscard]] std::string http_response(std::string_view status, std::string_view type,
                                        std::string_view body);
/// The response to a refused request: a plain-text sentence. `pages`: what there is instead of what
/// was not found.
[[nodiscard]] std::string http_refusal(int code, std::string_view pages);
/// The headers of a complete response.
[[nodiscard]] std::string_view head_of(std::string_view response);

template <class Protocol>
class BoundedSessions;

// From accepting a connection until it is closed at the latest.
inline constexpr std::chrono::seconds kHttpTimeMax{5};
// Connections served at a time; one more takes the place of the oldest.
inline constexpr std::size_t kHttpConnectionsMax = 16;
// How long accepting pauses when the process has no descriptor left.
inline constexpr std::chrono::seconds kHttpAcceptPause{1};

/// Answers GET and HEAD. A client that is slow, silent or hostile costs a bounded amount of memory
/// and time, and delays nothing else. Thread rule: the executor's thread. Ownership: owns the
/// listener and its connections.
class HttpServer {
 public:
  /// Makes the whole response to a request that is not refused already.
  using Respond = std::function<std::string(const HttpRequest& request)>;
  /// `pages`: see http_refusal().
  HttpServer(boost::asio::ip::tcp::acceptor listener, std::string pages, Respond respond);
  /// Closes every connection at once.
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;
  std::shared_ptr<BoundedSessions<boost::asio::ip::tcp>> sessions_;
};

}  // namespace ddprun::net
