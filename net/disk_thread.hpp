// DiskThread: runs what may take as long as a file system stalls, one job after another, on a
// thread of its own, while the io thread continues with heartbeats, exits and signals. Writes to
// regular files always block: O_NONBLOCK has no effect on them, and io_uring uses a thread as well.
// There is one thread per target that may stall independently, so that a stalled log directory does
// not affect the console. The thread begins with the first job; all signals are blocked in it.
// Thread rule: the io_context's thread, except drop(); jobs run on the other one. Ownership: copies
// share the thread. A job that is stuck in the kernel when the last copy goes is left behind with
// what it holds; those that have not begun are dropped.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/clock.hpp"
#include "base/descriptor.hpp"

namespace ddprun {

/// What jobs have left when a stop signal ends the wait for them.
inline constexpr std::chrono::seconds kDiskHurryMax{1};

class DiskThread {
 public:
  using Job = std::function<void()>;
  enum class Kind { kWrite, kOther };  // kWrite: data is lost if it is not done

  explicit DiskThread(const boost::asio::any_io_executor& executor);

  /// Runs `job` after all earlier ones, then `done` on the executor, unless this is destroyed
  /// before. A job must own what it uses. Without a thread (out of processes) it runs here.
  void post(Job job, Job done, Kind kind = Kind::kOther);
  /// Destroys `object` after all earlier jobs, on the thread if there is one. From any thread.
  void drop(std::shared_ptr<void> object);
  /// Completes when no job is left, or at `deadline`, or kDiskHurryMax after hurry().
  [[nodiscard]] boost::asio::awaitable<void> idle(TimePoint deadline);
  void hurry();
  /// Whether a kWrite is still to be done.
  [[nodiscard]] bool has_writes() const;
  /// Leaves what is still to be done to itself; what is posted from now on is dropped.
  void abandon();
  [[nodiscard]] boost::asio::any_io_executor executor() const;

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;
};

/// Runs `work` on a thread of its own, in which all signals are blocked: they are for the io
/// thread. Returns why there is none; empty: it runs.
[[nodiscard]] std::string start_detached(std::function<void()> work);

/// The result of `job`, run on `thread`; none when it is not there at `deadline`. What comes later
/// is destroyed.
template <class T>
boost::asio::awaitable<std::optional<T>> run_on(DiskThread& thread, std::function<T()> job,
                                                TimePoint deadline) {
  const auto result = std::make_shared<std::optional<T>>();
  const auto done = std::make_shared<boost::asio::steady_timer>(thread.executor(), deadline);
  const auto is_there = std::make_shared<bool>(false);
  thread.post([job = std::move(job), result] { result->emplace(job()); },
              [done, is_there] {
                *is_there = true;
                done->cancel();
              });
  const auto token = boost::asio::as_tuple(boost::asio::use_awaitable);
  if (!*is_there) {
    const auto [ended] = co_await done->async_wait(token);
    static_cast<void>(ended);  // the job's end or the deadline
  }
  std::optional<T> outcome;
  if (*is_there) outcome = std::move(*result);  // until then the other thread may write to it
  co_return outcome;
}

}  // namespace ddprun
