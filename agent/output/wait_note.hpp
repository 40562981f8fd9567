// WaitNote: logs one line about a wait for a file system that takes longer than kQuietMax. Thread
// rule: the io_context's thread. Ownership: destroyed when the wait ends; the logger outlives it.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <string>

#include "base/clock.hpp"

namespace spdlog {
class logger;
}

namespace ddprun {

class WaitNote {
 public:
  /// A wait for `what` begins now and lasts at most until `limit` (TimePoint::max(): until a
  /// signal).
  WaitNote(const boost::asio::any_io_executor& executor, spdlog::logger& logger,
           const std::string& what, TimePoint limit);

 private:
  boost::asio::steady_timer due_;
};

}  // namespace ddprun
