// ControlSocket: makes, serves and removes the control socket of one ddprun. A client that is slow,
// silent or hostile costs a bounded amount of memory and time, and delays nothing else. Thread
// rule: the io_context's thread. Ownership: owns the listening socket; the target outlives it.
#pragma once

#include <spdlog/logger.h>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "agent/control/directory.hpp"
#include "agent/control/request.hpp"
#include "agent/control/status.hpp"
#include "base/environment.hpp"
#include "base/result.hpp"
#include "net/disk_thread.hpp"

namespace ddprun::net {
template <class Protocol>
class BoundedSessions;
}

namespace ddprun::control {

// A connection is closed if its request is not read so long after it was accepted, or its answer so
// long after that.
inline constexpr std::chrono::seconds kRequestMax{5};
// Connections served at a time; others wait in the kernel's queue.
inline constexpr std::size_t kConnectionsMax = 32;

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

/// A machine without a place for a socket is told so once, and the run is not affected. The file
/// system is asked on `disk`. The logger and the target outlive it.
class ControlSocket {
 public:
  ControlSocket(DiskThread disk, spdlog::logger& logger, Target& target)
      : disk_(std::move(disk)), logger_(logger), target_(target) {}
  /// As close().
  ~ControlSocket() { close(); }
  ControlSocket(const ControlSocket&) = delete;
  ControlSocket& operator=(const ControlSocket&) = delete;

  /// Serves from a little later on. Further calls do nothing.
  void open(const Environment& environment);
  /// Tells the commands that wait for the end how the run ended here.
  void tell(const Outcome& outcome);
  /// Ends every connection and removes the file.
  void close();

 private:
  class Impl;
  void serve(const Result<Listener>& listener);

  DiskThread disk_;
  spdlog::logger& logger_;
  Target& target_;
  bool opened_ = false;
  std::shared_ptr<bool> closed_ = std::make_shared<bool>(false);
  std::string path_;
  std::shared_ptr<Impl> impl_{};  // null: not served
  std::shared_ptr<net::BoundedSessions<boost::asio::local::stream_protocol>> sessions_{};
};

}  // namespace ddprun::control
