#include "agent/signals.hpp"

#include <signal.h>

#include <algorithm>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "base/process_setup.hpp"

namespace ddprun {

namespace asio = boost::asio;

namespace {

bool is_ignored(int signal) {
  struct sigaction now {};
  return ::sigaction(signal, nullptr, &now) == 0 && now.sa_handler == SIG_IGN;
}

bool contains(const std::vector<int>& signals, int signal) {
  return std::find(signals.begin(), signals.end(), signal) != signals.end();
}

}  // namespace

Signals::Signals(asio::any_io_executor executor, const std::vector<int>& stop_signals)
    : set_(executor), stop_signals_(stop_signals) {
  for (const int signal : stop_signals) {
    if (signal == SIGHUP && is_ignored(SIGHUP)) continue;
    take(signal);
  }
  for (const int signal : {SIGUSR1, SIGUSR2, SIGCONT, SIGWINCH}) {
    if (!contains(stop_signals, signal)) take(signal);
  }
  unblock_signals(taken_);
}

void Signals::take(int signal) {
  boost::system::error_code why;  // SIGKILL and the like were refused with the command line
  set_.add(signal, why);
  if (!why) taken_.push_back(signal);
}

asio::awaitable<void> Signals::deliver(Handler stop, Handler pass) {
  for (;;) {
    boost::system::error_code why;
    const int signal = co_await set_.async_wait(asio::redirect_error(asio::use_awaitable, why));
    if (why) co_return;
    const Handler& handler = contains(stop_signals_, signal) ? stop : pass;
    handler(signal);
  }
}

}  // namespace ddprun
