// HttpServer: answers GET and HEAD, one request per connection. A client that is slow, silent or
// hostile costs a bounded amount of memory and time, and delays nothing else. Thread rule: the
// executor's thread. Ownership: owns the listener and its connections.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "net/http.hpp"

namespace ddprun::net {

template <class Protocol>
class BoundedSessions;

// From accepting a connection until it is closed at the latest.
inline constexpr std::chrono::seconds kHttpTimeMax{5};
// Connections served at a time; one more takes the place of the oldest.
inline constexpr std::size_t kHttpConnectionsMax = 16;
// How long accepting pauses when the process has no descriptor left.
inline constexpr std::chrono::seconds kHttpAcceptPause{1};

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
