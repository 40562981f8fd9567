// SleepWatch: which workers of this node have been in uninterruptible sleep (state D) for
// TORCHELASTIC_UNINTERRUPTIBLE_STATE_TIMEOUT, from looks at the state of each. A worker that was
// not in it at one look begins again. Pure, no thread rule.
#pragma once

#include <chrono>
#include <map>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/worker_exit.hpp"

namespace ddprun {

// With TORCHELASTIC_UNINTERRUPTIBLE_STATE_TIMEOUT the states of the workers are read four times
// within the limit, at intervals between these: often, so that short sleeps are not taken for one.
inline constexpr Duration kSleepLookMin = std::chrono::milliseconds(10);
inline constexpr Duration kSleepLookMax = std::chrono::seconds(1);

/// The letter of a worker's state, as /proc shows it.
struct WorkerState {
  WorkerName worker{};
  char state = '?';
};

/// A worker in uninterruptible sleep.
struct Sleeper {
  WorkerName worker{};
  Duration lasts{};
  std::string wait_channel{};  // where in the kernel; empty: unknown
};

class SleepWatch {
 public:
  /// `limit`: above 0.
  explicit SleepWatch(Duration limit);

  /// All workers run; looks follow.
  void begin(TimePoint now);
  /// When the next look is due: a sleep is noticed within a quarter of the limit.
  [[nodiscard]] TimePoint next() const { return looked_ + interval_; }
  /// Those that have slept for the limit. A look that is late, because this process or the machine
  /// was suspended, says nothing about the time before: then all begin again.
  [[nodiscard]] std::vector<Sleeper> look(const std::vector<WorkerState>& workers, TimePoint now);

 private:
  Duration limit_;
  Duration interval_;
  TimePoint looked_{};
  std::map<int, TimePoint> since_{};  // by pid, of those that slept at the last look
};

}  // namespace ddprun
