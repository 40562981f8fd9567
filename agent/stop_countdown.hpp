// StopCountdown: while a stop waits for ranks, says every kCountdownInterval how much time they
// have left and which they are. Thread rule: the io_context's thread. Ownership: the logger
// outlives it.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <vector>

#include "base/clock.hpp"
#include "base/types.hpp"

namespace spdlog {
class logger;
}

namespace ddprun {

class StopCountdown {
 public:
  using Running = std::function<std::vector<Rank>()>;
  StopCountdown(boost::asio::any_io_executor executor, spdlog::logger& logger, Running running)
      : tick_(std::move(executor)), logger_(logger), running_(std::move(running)) {}

  /// Until end(), or the deadline of SIGKILL.
  void begin(TimePoint deadline);
  void end() { tick_.cancel(); }

 private:
  void tick();

  boost::asio::steady_timer tick_;
  spdlog::logger& logger_;
  Running running_;
  TimePoint deadline_{};
};

}  // namespace ddprun
