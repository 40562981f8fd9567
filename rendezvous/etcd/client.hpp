// Client: asks the servers of an etcd cluster, in turn until one answers, through the JSON gateway
// of its v3 API: gRPC would bring its library, protobuf and their threads into a program that
// starts in milliseconds. Decides nothing but which server to ask. Thread rule: the io_context's
// thread. Every call is answered once, by its deadline, never from inside call(), and not after the
// destructor.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "rendezvous/etcd/election.hpp"
#include "rendezvous/etcd/exchange.hpp"

namespace ddprun::etcd {

struct ClientOptions {
  std::vector<Endpoint> endpoints;  // at least one
  std::string user;                 // empty: none
  std::string password;
  net::SharedTlsContext tls = nullptr;  // null: plain HTTP
  std::size_t first = 0;                // the endpoint to ask first
};

/// What came of a call: a body, or why there is none.
struct Reply {
  bool answered = false;
  std::string body;
  std::string failure;
  Reach reach = Reach::kNone;
  bool refused = false;  // see Failed
};

class Client {
 public:
  using Done = std::function<void(Reply)>;

  Client(boost::asio::any_io_executor executor, ClientOptions options);
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  /// `path`: "/v3/kv/txn".
  void call(const std::string& path, std::string body, Duration within, Done done);
  /// Replaces the watch before. `line` is called with each line of the answer, `ended` once when no
  /// more follows.
  void watch(std::string body, Duration within, std::function<void(std::string_view)> line,
             std::function<void(std::string why)> ended);
  /// Of this node, as the server that answered last sees it; empty before.
  [[nodiscard]] const std::string& own_address() const;

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace ddprun::etcd
