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
#include <vector>

#include "agent/config/launch_config.hpp"
#include "base/result.hpp"
#include "rendezvous/client/membership/events.hpp"
#include "rendezvous/coordinator/server.hpp"

namespace ddprun {

using Coordinator = std::unique_ptr<coordinator::Server>;

/// Makes the coordinator that is to run in this process, on the agent's executor: before the agent
/// starts, and again as long as no coordinator has answered. Null: another process has the port, or
/// this node is not to be the host. An error ends the run before anything is started.
using MakeCoordinator = std::function<Result<Coordinator>(boost::asio::any_io_executor executor)>;

/// Makes a coordinator that comes into being while the run lives, because this node was chosen for
/// it. Serves on `listener`, which listens already.
using OpenCoordinator = std::function<Result<Coordinator>(boost::asio::ip::tcp::acceptor listener,
                                                          coordinator::SeatTerms terms)>;

/// The agent, as the seats of coordinators in its process see it. Nothing here is called from
/// inside a call of a seat, but for the questions.
class SeatUser {
 public:
  /// The agent gives the event to its Membership.
  virtual void feed(client::Event event) = 0;
  /// The coordinator is at this address, or nowhere, for this reason.
  virtual void coordinator_at(const std::optional<CoordinatorAddress>& where, bool here,
                              const std::string& why) = 0;
  /// Two nodes were asked to coordinate the run, and the others find that one.
  virtual void joins_other(const CoordinatorAddress& other) = 0;
  virtual void seat_note(const std::string& text) = 0;
  /// The node leaves the run.
  virtual void fail(const Error& error) = 0;
  /// Whether a coordinator answers this node.
  [[nodiscard]] virtual bool has_coordinator() const = 0;
  /// Coordinators that may not know of this node's, besides that of the endpoint.
  [[nodiscard]] virtual std::vector<client::Place> former_coordinators() const = 0;

 protected:
  ~SeatUser() = default;
};

class CoordinatorPort {
 public:
  CoordinatorPort(boost::asio::any_io_executor executor, OpenCoordinator open)
      : executor_(std::move(executor)), open_(std::move(open)) {}

  /// Listens at this address, a literal; port 0: one that the kernel picks. Agents may connect, and
  /// wait. Returns the port; replaces what was reserved before.
  [[nodiscard]] Result<std::uint16_t> reserve(const std::string& address, std::uint16_t port = 0);
  /// Serves where reserve() listens.
  [[nodiscard]] Result<void> open(coordinator::SeatTerms terms);
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
