#include "agent/coordinate/coordinator_port.hpp"

#include <utility>

#include "base/assert.hpp"
#include "net/listen.hpp"

namespace ddprun {

Result<std::uint16_t> CoordinatorPort::reserve(const std::string& address, std::uint16_t port) {
  listener_.reset();
  auto listener = net::listen_on(executor_, address, port);
  if (!listener) return listener.error();
  boost::system::error_code ignored;
  const std::uint16_t bound = listener->local_endpoint(ignored).port();
  listener_.emplace(std::move(*listener));
  return bound;
}

Result<void> CoordinatorPort::open(coordinator::SeatTerms terms) {
  DDPRUN_ASSERT(listener_.has_value());
  auto made = open_(std::move(*listener_), std::move(terms));
  listener_.reset();
  if (!made) return made.error();
  coordinator_ = std::move(*made);
  return {};
}

void CoordinatorPort::close() {
  listener_.reset();
  coordinator_.reset();
}

}  // namespace ddprun
