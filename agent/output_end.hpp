// OutputEnd: what follows when a run is over: the consoles get the time to take what was said, a
// report that they did not take is put into the log directory, and a temporary one goes. Thread
// rule: the io_context's thread. Ownership: the log tree (null: none was opened) outlives it.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <memory>

#include "agent/proc/console.hpp"
#include "agent/proc/log_tree.hpp"

namespace ddprun {

class OutputEnd {
 public:
  OutputEnd(Consoles consoles, std::unique_ptr<LogTree>& logs)
      : consoles_(std::move(consoles)), logs_(logs) {}

  /// Completes when everything is said, kConsoleFlushMax and a little later in any case.
  [[nodiscard]] boost::asio::awaitable<void> finish();
  [[nodiscard]] bool began() const { return began_; }
  /// A stop signal came: a console that does not take what was said is waited for no longer.
  void hurry();

 private:
  void keep_what_was_not_taken();

  Consoles consoles_;
  std::unique_ptr<LogTree>& logs_;
  bool began_ = false;
};

}  // namespace ddprun
