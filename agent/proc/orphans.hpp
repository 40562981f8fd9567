// Orphans: processes left behind by workers, which become children of this process: it is their
// child subreaper. This reaps them when they end, and says whether there can be any. Thread rule:
// the io_context's thread. Ownership: must outlive its users.
#pragma once

#include <sys/types.h>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <set>

namespace ddprun {

class Orphans {
 public:
  /// Makes this process a child subreaper.
  explicit Orphans(boost::asio::any_io_executor executor);

  /// Excludes a child whose status is collected elsewhere: it is no orphan. Call before the event
  /// loop runs again after the child was started: a child that is not excluded counts as left
  /// behind by a worker, and is ended with its round.
  void except(pid_t child) {
    standing_.erase(child);
    own_.insert(child);
  }
  /// The same for a child that may outlive all workers of a round.
  void except_standing(pid_t child) { standing_.insert(child); }
  /// The status has been collected; the pid may be reused by an orphan.
  void no_longer_except(pid_t child);
  [[nodiscard]] bool is_excepted(pid_t child) const {
    return own_.count(child) != 0 || standing_.count(child) != 0;
  }
  /// Whether all children are orphans, but for the standing ones.
  [[nodiscard]] bool no_child_excepted() const { return own_.empty(); }

  /// Reaps orphans when SIGCHLD arrives, until cancelled.
  [[nodiscard]] boost::asio::awaitable<void> reap();

  enum class Any { kNo, kYes, kUnknown };
  /// Whether there are any, zombies aside. A few system calls; where the kernel lists no children,
  /// kUnknown while some are excepted, and a pass over /proc if those are standing ones only.
  [[nodiscard]] Any any();
  /// Completes when no child but the standing ones is excepted any more, so that any() knows, or at
  /// wake().
  [[nodiscard]] boost::asio::awaitable<void> wait_for_news();
  void wake() { news_.cancel(); }

 private:
  void reap_ended() const;

  boost::asio::signal_set ended_;
  boost::asio::steady_timer news_;  // never expires
  std::set<pid_t> own_;
  std::set<pid_t> standing_;
};

}  // namespace ddprun
