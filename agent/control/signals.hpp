// Signals: the signals that the agent handles, with their senders. Thread rule: the io_context's
// thread, before any other thread exists; one per process. They are blocked and read from a
// descriptor, and stay blocked at the end: a late one does not change an exit code.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <functional>
#include <optional>
#include <vector>

#include "agent/config/received_signal.hpp"

namespace ddprun {

class Signals {
 public:
  using Handler = std::function<void(const ReceivedSignal&)>;

  /// Handles `stop_signals`, and of SIGUSR1, SIGUSR2, SIGCONT, SIGWINCH and SIGTSTP those that are
  /// not among them; none that was ignored when the process started. Throws
  /// boost::system::system_error when there is no descriptor for that.
  Signals(boost::asio::any_io_executor executor, const std::vector<int>& stop_signals);

  /// Passes every stop signal to `stop` and every other one to `pass` until it is cancelled. One
  /// that came directly and through the front (launcher/front) is passed once.
  [[nodiscard]] boost::asio::awaitable<void> deliver(Handler stop, Handler pass);

 private:
  [[nodiscard]] std::optional<ReceivedSignal> next();

  boost::asio::posix::stream_descriptor pending_;
  std::vector<int> stop_signals_;
  SignalPairs pairs_;
};

}  // namespace ddprun
