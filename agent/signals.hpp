// Signals: which signals the agent handles, and how. Thread rule: the io_context's thread; one per
// process. Ownership: the dispositions belong to the process; the destructor restores those that
// Asio found.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/signal_set.hpp>
#include <functional>
#include <vector>

#include "base/result.hpp"

namespace ddprun {

class Signals {
 public:
  using Handler = std::function<void(int)>;

  /// Handles and unblocks `stop_signals`, except a SIGHUP that was ignored when the process started
  /// (nohup), and of SIGUSR1, SIGUSR2, SIGCONT and SIGWINCH those that are not among them.
  Signals(boost::asio::any_io_executor executor, const std::vector<int>& stop_signals);

  /// Passes every stop signal to `stop` and every other one to `pass` until it is cancelled.
  [[nodiscard]] boost::asio::awaitable<void> deliver(Handler stop, Handler pass);

 private:
  void take(int signal);

  boost::asio::signal_set set_;
  std::vector<int> stop_signals_;
  std::vector<int> taken_;
};

}  // namespace ddprun
