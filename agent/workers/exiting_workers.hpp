// ExitingWorkers: workers that have begun to exit, and whose end the round did not wait for
// (RoundRunner::exits()). No process is started in the place of one, nor does ddprun exit, before
// they are gone, or have been given up as those that SIGKILL does not end. Thread rule: the
// io_context's thread. Ownership: shared by the rounds.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <utility>

#include "base/clock.hpp"
#include "base/limits.hpp"

namespace ddprun {

class ExitingWorkers {
 public:
  explicit ExitingWorkers(boost::asio::any_io_executor executor)
      : news_(std::move(executor), TimePoint::min()) {}

  void begun() {
    ++count_;
    news_.expires_at(Clock::now() + kWaitAfterKill);
  }
  void gone() {
    --count_;
    news_.cancel();
  }
  [[nodiscard]] bool any() const { return count_ > 0 && Clock::now() < news_.expiry(); }
  [[nodiscard]] boost::asio::awaitable<void> wait_until_gone() {
    boost::system::error_code woken;
    while (any()) {
      co_await news_.async_wait(boost::asio::redirect_error(boost::asio::use_awaitable, woken));
    }
  }

 private:
  int count_ = 0;
  boost::asio::steady_timer news_;  // until they are given up
};

}  // namespace ddprun
