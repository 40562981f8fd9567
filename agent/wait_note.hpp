// WaitNote: one line about a wait for a file system, if it takes longer than kQuietMax. Thread
// rule: the io_context's thread. Ownership: the logger outlives it.
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
  /// `what` is waited for from now on, at most until `limit` (TimePoint::max(): until a signal).
  WaitNote(const boost::asio::any_io_executor& executor, spdlog::logger& logger,
           const std::string& what, TimePoint limit);

 private:
  boost::asio::steady_timer due_;  // goes with the wait
};

}  // namespace ddprun
