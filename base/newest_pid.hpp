// Following processes that fork faster than /proc can be listed. Allocates nothing. Thread rule:
// any thread.
#pragma once

#include <sys/types.h>

namespace ddprun {

/// The pid that was given out last in the pid namespace of this process, from /proc/loadavg; 0
/// where that cannot be read.
[[nodiscard]] pid_t newest_pid();

/// Pids that are given out while it is used. A pass over /proc meets a process that is forked
/// meanwhile only if its pid is higher than the pass has come, which no pid is once numbers have
/// started again at a low one; a chain of processes, each of which ends when the next one runs,
/// escapes such passes for seconds.
class NewPids {
 public:
  using Newest = pid_t (*)();
  explicit NewPids(Newest newest = newest_pid) : newest_(newest), from_(newest()) {}

  /// Calls `visit`, which returns whether it wants to see more, with the pids given out since the
  /// last call, the newest one of that call again, until one round of them wants no more. At most
  /// kNewPidsMax.
  template <class Visit>
  void follow(Visit visit) {
    for (int visited = 0; visited < kNewPidsMax;) {
      const pid_t newest = newest_();
      if (newest == 0) return;
      const bool lost = newest < from_ || newest - from_ > kNewPidsMax;
      if (lost) from_ = newest > kNearPids ? newest - kNearPids : 1;
      bool more = false;
      for (pid_t pid = from_; pid <= newest; ++pid, ++visited) more = visit(pid) || more;
      from_ = newest;
      if (!more) return;
    }
  }

 private:
  static constexpr int kNewPidsMax = 2000;  // a pid that is gone costs 2 µs
  static constexpr int kNearPids = 100;

  Newest newest_;
  pid_t from_;
};

}  // namespace ddprun
