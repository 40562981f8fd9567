// How a coordinator comes into the agent's process. The launcher knows what it serves and to whom;
// the agent, when there is to be one; CoordinatorPort is where it may come into being while the run
// lives, and go again. Thread rule: the io_context's thread.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/clock.hpp"
#include "base/result.hpp"
#include "rendezvous/coordinator/server.hpp"
#include "rendezvous/protocol/run_record.hpp"

namespace ddprun {

using Coordinator = std::unique_ptr<coordinator::Server>;

/// Makes the coordinator that is to run in this process, on the agent's executor: before the agent
/// starts, and again as long as no coordinator has answered. Null: another process has the port, or
/// this node is not to be the host. An error ends the run before anything is started.
using MakeCoordinator = std::function<Result<Coordinator>(boost::asio::any_io_executor executor)>;

/// A coordinator that comes into being while the run lives, because this node was chosen for it.
struct SeatTerms {
  std::optional<RunRecord> record;                  // what the one before it left in etcd
  std::function<void(const RunRecord&)> on_record;  // that has changed
  std::function<bool()> may_act;                    // no other one can act now
  std::int64_t term = 0;                            // in which it was elected; 0: it was not
  std::string keeper{};                             // of the record: "etcd h1:2379"
  Duration keeper_timeout{};                        // how long the end of a run waits for that
  /// Without a third party: set if it comes after a coordinator that was lost, and has to find a
  /// majority (docs/FAILOVER.md).
  struct Candidate {
    std::string ended_author;
    std::string why;
    std::string origin;
    std::function<void(const std::string& reason)> on_abdicate;
  };
  std::optional<Candidate> candidate{};
};

/// Serves on `listener`, which listens already.
using OpenCoordinator =
    std::function<Result<Coordinator>(boost::asio::ip::tcp::acceptor listener, SeatTerms terms)>;

class CoordinatorPort {
 public:
  CoordinatorPort(boost::asio::any_io_executor executor, OpenCoordinator open)
      : executor_(std::move(executor)), open_(std::move(open)) {}

  /// Listens at this address, a literal; port 0: one that the kernel picks. Agents may connect, and
  /// wait. Returns the port; replaces what was reserved before.
  [[nodiscard]] Result<std::uint16_t> reserve(const std::string& address, std::uint16_t port = 0);
  /// Serves where reserve() listens.
  [[nodiscard]] Result<void> open(SeatTerms terms);
  /// Closes the links of all agents, and what was reserved. Workers are not affected.
  void close();
  /// Null while it is not open.
  [[nodiscard]] coordinator::Server* coordinator() const { return coordinator_.get(); }
  /// What reserve() opened; null after open().
  [[nodiscard]] boost::asio::ip::tcp::acceptor* listener() {
    return listener_ ? &*listener_ : nullptr;
  }
  /// The coordinator stays in this process, whatever becomes of the port.
  [[nodiscard]] Coordinator take() { return std::move(coordinator_); }

 private:
  boost::asio::any_io_executor executor_;
  OpenCoordinator open_;
  std::optional<boost::asio::ip::tcp::acceptor> listener_;
  Coordinator coordinator_;
};

}  // namespace ddprun
