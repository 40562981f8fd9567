// Orphans: processes that workers left behind and whose parent is now this process, because it is
// pid 1 of a container or a child subreaper. Nobody else reaps them, so they would stay zombies.
// Thread rule: the io_context's thread. Ownership: outlives whoever was told of it.
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

  /// A child whose status somebody else collects: it is never reaped here. To be said before the
  /// loop runs again after it was started.
  void except(pid_t child) { own_.insert(child); }
  /// That status has been collected; its number may come back as an orphan's.
  void no_longer_except(pid_t child) { own_.erase(child); }

  /// Reaps orphans as they end, for ever, woken by SIGCHLD; completes at once where none can come.
  /// Cancelling ends it.
  [[nodiscard]] boost::asio::awaitable<void> reap();

 private:
  void reap_ended() const;

  boost::asio::signal_set ended_;
  std::set<pid_t> own_;
};

}  // namespace ddprun
