// Child: a process that spawn() started, watched through its pidfd. Passive: it never acts on its
// own. Thread rule: the io_context's thread. Ownership: holds the pidfd; the destructor neither
// blocks nor kills, so a Child that is given up before wait() completed leaves its process running.
#pragma once

#include <sys/types.h>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <optional>

#include "agent/proc/cgroup.hpp"
#include "base/exit_status.hpp"
#include "base/result.hpp"
#include "base/worker_exit.hpp"

namespace ddprun {

class Child {
 public:
  /// Takes `pidfd` over. Throws boost::system::system_error when it cannot be watched; it is closed
  /// then.
  Child(boost::asio::any_io_executor executor, pid_t pid, int pidfd,
        std::optional<Cgroup> leaf = {});

  [[nodiscard]] pid_t pid() const { return pid_; }
  /// The cgroup it was started in, with nothing else in it; none where there are none.
  [[nodiscard]] const std::optional<Cgroup>& leaf() const { return leaf_; }
  /// Completes when the process has ended, without a poll; no deadline, because the caller owns the
  /// order to end it. What it has started is left alone (descendants.hpp). Called again it returns
  /// the same status. The Child must stay where it is until this completes. Cancelling (terminal)
  /// fails with kSystem and leaves the process alone. Fails with kSystem also when another part of
  /// the process reaped the process.
  [[nodiscard]] boost::asio::awaitable<Result<ExitStatus>> wait();
  /// After wait(), of a worker that failed: its limits as it ended.
  [[nodiscard]] const LimitEvidence& limits() const { return limits_; }
  /// After wait(): the resident memory of its largest process, those it waited for included.
  [[nodiscard]] std::int64_t resident_peak() const { return resident_peak_; }
  /// Sends to the whole process group, and continues what is stopped in it, or the signal would
  /// wait. Nothing happens when the leader has ended.
  void signal_group(int signal_number);
  /// Stops its process group as long as this process is stopped, or continues it.
  void pause_group(bool on);

 private:
  Result<void> reap();  // sets the status of one that has ended

  pid_t pid_;
  boost::asio::posix::stream_descriptor pidfd_;
  std::optional<Cgroup> leaf_;
  std::optional<ExitStatus> status_;  // set once the pid has been given back
  LimitEvidence limits_;
  std::int64_t resident_peak_ = 0;
};

}  // namespace ddprun
