// Server: the agent's end of the links of this run's workers, whatever round they are in. Only
// processes of these workers, as the kernel knows them, are served; one that is silent, fast or
// hostile costs a bounded amount of memory and time, and delays nothing else.
//
// A process reports through a page that it shares with the agent: a packet for each step would cost
// a wake-up here, thousands of times a second, and the last ones would be lost with a worker that
// is killed. The socket lies in a private directory in memory. Every user could connect to an
// abstract name, and send a descriptor whose last close blocks the agent (SO_LINGER). Thread rule:
// the io_context's thread. Ownership: owns the socket and the pages. The target outlives it.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>

#include "agent/worker_link/packet.hpp"
#include "agent/worker_link/page_view.hpp"
#include "base/result.hpp"
#include "base/types.hpp"

namespace ddprun::net {
template <class Protocol>
class BoundedSessions;
}

namespace ddprun::worker_link {

// From accepting a connection until its page is here; then it is closed.
inline constexpr std::chrono::seconds kHelloMax{5};
// Packets of one connection that are read at once, and the interval of more. Others wait in the
// kernel's buffer; when that is full, the library drops what it was to send.
inline constexpr int kPacketBurst = 64;
inline constexpr Duration kPacketInterval = std::chrono::milliseconds(20);

/// One worker of this run; no other one gets its number.
using WorkerNumber = Strong<struct WorkerNumberTag, int>;

/// It survives, and its process may have begun to exit.
struct Exits {};
/// What a worker says: OpenSection, one that exceeds its limit, once for each process, and once
/// more after look_again(); Survives, that it can take a new round, once for each of its links;
/// Joined, that it has taken the round that was pushed to it last, once for each.
using Report = std::variant<Ready, Checkpoint, Survives, Joined, OpenSection, Exits>;

/// What the workers' reports mean here.
class Target {
 public:
  struct Owner {
    WorkerNumber worker{};
    bool is_itself = false;  // else a process below it
  };
  Target() = default;
  Target(const Target&) = delete;
  Target& operator=(const Target&) = delete;
  virtual ~Target() = default;

  /// The worker that this process is, or descends from.
  [[nodiscard]] virtual std::optional<Owner> owner_of(int pid) const = 0;
  virtual void hear(WorkerNumber worker, const Report& report) = 0;
};

class Server {
 public:
  /// Listens at the path `variable_value`, which it removes at its end. Errors: kSystem.
  [[nodiscard]] static Result<std::unique_ptr<Server>> open(
      const boost::asio::any_io_executor& executor, const std::string& variable_value, int workers,
      Target& target);
  /// Closes every link at once: a worker that is left notices it.
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  /// Tells the workers that are connected, and those to come, of a stop that leaves time to save.
  void ask_to_stop(int signal);
  /// Of all processes of a worker, also of those that have ended, the highest.
  [[nodiscard]] std::optional<LastStep> last_step(WorkerNumber worker) const;
  /// Whether a process of the worker has a link.
  [[nodiscard]] bool is_linked(WorkerNumber worker) const;

  /// Whether it has said that it can take a new round, and is still connected.
  [[nodiscard]] bool survives(WorkerNumber worker) const;
  /// Sends it the round, in place of one that it has not received yet. Never waits: whether it
  /// takes the round says a report, Joined. False: it does not survive, or there are too many
  /// variables.
  [[nodiscard]] bool push(WorkerNumber worker, const PushedRound& round);
  /// Another round has it: its sections are watched for that one.
  void look_again(WorkerNumber worker);
  /// Closes its links; it is not known any more.
  void forget(WorkerNumber worker);

 private:
  class Impl;
  using Sessions = net::BoundedSessions<boost::asio::local::stream_protocol>;
  Server(std::shared_ptr<Impl> impl, std::shared_ptr<Sessions> sessions);

  std::shared_ptr<Impl> impl_;
  std::shared_ptr<Sessions> sessions_;
};

}  // namespace ddprun::worker_link
