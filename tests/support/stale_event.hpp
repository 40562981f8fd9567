// StaleEvent: the event of a descriptor that was closed while the event was on its way. Asio uses
// the state of such a descriptor again, and gives the event to the one that is watched next.
#pragma once

#include <sys/eventfd.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <utility>

#include "tests/support/catch.hpp"

namespace ddprun::test {

class StaleEvent {
 public:
  explicit StaleEvent(boost::asio::io_context& io)
      : before_(io, readable()), its_(io, readable()) {}

  /// Completes when the event is the next one: watch a new descriptor from there, after close().
  template <class Token>
  auto async_wait(Token&& token) {
    return before_.async_wait(Descriptor::wait_read, std::forward<Token>(token));
  }
  void close() { its_.close(); }

 private:
  using Descriptor = boost::asio::posix::stream_descriptor;
  static int readable() {
    const int made = ::eventfd(1, EFD_CLOEXEC);
    REQUIRE(made >= 0);
    return made;
  }

  Descriptor before_;
  Descriptor its_;
};

}  // namespace ddprun::test
