// StopCountdown: while a stop waits for ranks, says every kCountdownInterval how much time they
// have left and which they are. Thread rule: the io_context's thread. Ownership: the logger
// outlives it.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <vector>

#include "agent/output/wait_line.hpp"
#include "base/clock.hpp"
#include "base/types.hpp"

namespace spdlog {
class logger;
}

namespace ddprun {

// A stop that takes longer is told this often, with the ranks that still run.
inline constexpr Duration kCountdownInterval = std::chrono::seconds(10);

class StopCountdown {
 public:
  using Running = std::function<std::vector<Rank>()>;
  /// `waits`: the line on a terminal, which says it every second; null: none.
  StopCountdown(boost::asio::any_io_executor executor, spdlog::logger& logger, Running running,
                std::shared_ptr<WaitLine> waits)
      : tick_(std::move(executor)),
        logger_(logger),
        running_(std::move(running)),
        waits_(std::move(waits)) {}
  ~StopCountdown() { end(); }
  StopCountdown(const StopCountdown&) = delete;
  StopCountdown& operator=(const StopCountdown&) = delete;

  /// Until end(), or the deadline of SIGKILL.
  void begin(TimePoint deadline, int all);
  void end();

 private:
  void arm();
  void tick();

  boost::asio::steady_timer tick_;
  spdlog::logger& logger_;
  Running running_;
  std::shared_ptr<WaitLine> waits_;
  TimePoint deadline_{};
};

}  // namespace ddprun
