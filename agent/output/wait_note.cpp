#include "agent/output/wait_note.hpp"

#include <spdlog/logger.h>

#include "agent/report/lines.hpp"
#include "base/duration_text.hpp"
#include "rendezvous/client/membership.hpp"

namespace ddprun {

WaitNote::WaitNote(const boost::asio::any_io_executor& executor, spdlog::logger& logger,
                   const std::string& what, TimePoint limit)
    : due_(executor, Clock::now() + client::kQuietMax) {
  due_.async_wait([&logger, what, limit](const boost::system::error_code& over) {
    if (over) return;
    const auto left = std::chrono::ceil<std::chrono::seconds>(limit - Clock::now());
    const std::string end = limit == TimePoint::max() ? "a stop signal ends the wait"
                                                      : "gives up in " + duration_text(left);
    logger.info(run_note("waiting for " + what + ": its file system does not respond; " + end));
  });
}

}  // namespace ddprun
