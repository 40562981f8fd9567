// Exchange: one HTTP request to one server of etcd, over a connection of its own. The answer comes
// as a whole, or line by line for as long as the server sends. Thread rule: the io_context's
// thread. Ownership: shared with its own pending operations. `done` is called once, never from
// inside start(), and nothing is called after cancel().
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/clock.hpp"
#include "net/tls.hpp"

namespace ddprun::etcd {

struct Endpoint {
  std::string host;  // a name, or a literal without brackets
  std::uint16_t port = 0;
};

struct HttpAnswer {
  bool connected = false;   // the server accepted the connection
  bool answered = false;    // and sent a whole answer
  bool distrusted = false;  // not answered, because of TLS: one side does not believe the other
  bool silent = false;      // not answered: it ended the connection without one byte
  std::string failure;      // unless it was answered: the address and the cause
  int status = 0;
  std::string body;
  std::string own_address;  // of this node, as the server sees it; empty unless connected
};

class Exchange {
 public:
  struct Request {
    Endpoint where;
    std::string path;
    std::string body;
    std::string token;                    // empty: none
    TimePoint deadline;                   // with `line`: for the beginning of the answer
    net::SharedTlsContext tls = nullptr;  // null: plain HTTP
    /// Unset: the answer is one body.
    std::function<void(std::string_view line)> line{};
  };
  using Done = std::function<void(HttpAnswer)>;

  Exchange(boost::asio::any_io_executor executor, Request request, Done done);
  ~Exchange();
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;
  void start();
  void cancel();

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace ddprun::etcd
