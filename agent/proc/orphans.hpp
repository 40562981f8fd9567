// Orphans: processes left behind by workers and reparented to this process, because it is pid 1 of
// a container or a child subreaper. Without reaping they would stay zombies. Thread rule: the
// io_context's thread. Ownership: must outlive its users.
#pragma once

#include <sys/types.h>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/signal_set.hpp>
#include <set>

namespace ddprun {

class Orphans {
 public:
  explicit Orphans(boost::asio::any_io_executor executor);

  /// Excludes a child whose status is collected elsewhere: it is never reaped here. Call before the
  /// event loop runs again after the child was started.
  void except(pid_t child) { own_.insert(child); }
  /// The status has been collected; the pid may be reused by an orphan.
  void no_longer_except(pid_t child) { own_.erase(child); }

  /// Reaps orphans when SIGCHLD arrives, until cancelled; completes immediately if this process
  /// cannot have orphans.
  [[nodiscard]] boost::asio::awaitable<void> reap();

 private:
  void reap_ended() const;

  boost::asio::signal_set ended_;
  std::set<pid_t> own_;
};

}  // namespace ddprun
