// CoordinatorPort: a port where a coordinator of the run may come into being in this process while
// the run lives, and go again. Who is to coordinate is decided elsewhere. Thread rule: the
// io_context's thread.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "agent/coordinate/open_coordinator.hpp"

namespace ddprun {

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
