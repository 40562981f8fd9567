// Server: serves the control socket of one ddprun. A client that is slow, silent or hostile costs a
// bounded amount of memory and time, and delays nothing else. Thread rule: the io_context's thread.
// Ownership: owns the listening socket; the file is its maker's to remove. The target outlives it.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <memory>
#include <string>

#include "agent/control/request.hpp"
#include "agent/control/status.hpp"
#include "base/result.hpp"

namespace ddprun::net {
template <class Protocol>
class BoundedSessions;
}

namespace ddprun::control {

/// Who sent a request, as the kernel knows it.
struct Peer {
  int pid = 0;
  unsigned user = 0;
};

/// What commands do here.
class Target {
 public:
  Target() = default;
  Target(const Target&) = delete;
  Target& operator=(const Target&) = delete;
  virtual ~Target() = default;

  [[nodiscard]] virtual NodeStatus status() const = 0;
  /// Passes `signal` to the workers of every node. Returns what was done, or why it was refused;
  /// `force`: also where workers would end by it.
  [[nodiscard]] virtual Result<std::string> signal_workers(int signal, bool force,
                                                           const Peer& from) = 0;
  /// As SIGTERM to ddprun, or to the ddprun of every node of the run.
  enum class Reach { kThisNode, kAllNodes };
  virtual void stop(const Peer& from, Reach reach) = 0;
  /// Saves the stacks of the ranks here. Returns where they are. At most a few seconds.
  [[nodiscard]] virtual boost::asio::awaitable<std::string> stacks() = 0;
};

class Server {
 public:
  /// Takes over `descriptor`, which listens.
  Server(const boost::asio::any_io_executor& executor, int descriptor, Target& target);
  /// Closes every connection at once.
  ~Server();
  /// Tells the clients that wait for it. Once, before the server goes.
  void tell(const Outcome& outcome);
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;
  std::shared_ptr<net::BoundedSessions<boost::asio::local::stream_protocol>> sessions_;
};

}  // namespace ddprun::control
