// TimerTable: the timers that workers set through the pipe of TORCHELASTIC_TIMER_FILE: what a
// request says, which are due, and when the next one is. Pure, no thread rule.
#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "base/result.hpp"

namespace ddprun {

// Timers of workers (TORCHELASTIC_ENABLE_FILE_TIMER) at one time; beyond it one is ignored, which
// is said once.
inline constexpr std::size_t kTimersMax = 4096;
// A timer that expires later counts as one that expires then.
inline constexpr std::chrono::hours kTimerFarthest{24 * 365 * 10};

/// One line of the pipe, as torch.distributed.elastic.timer.FileTimerClient writes it.
struct TimerRequest {
  int pid = 0;          // above 0; of the process that has set the timer
  std::string scope{};  // the name of the timer: by default file and line
  double expires = 0;   // seconds since the epoch; below 0: the timer is released
  int signal = 0;       // to that process; 0: none
  [[nodiscard]] bool releases() const { return expires < 0; }
};

/// Fields beyond these are ignored, as torchrun does. The sentence says what is wrong.
[[nodiscard]] Result<TimerRequest> parse_timer_request(std::string_view line);

struct WorkerTimer {
  int pid = 0;
  std::string scope{};
  int signal = 0;  // 0: expires without one
  Duration lasts{};
  TimePoint deadline{};  // TimePoint::max(): see hold()
  /// When the process began, so that another one with its pid is not taken for it.
  unsigned long long process_started = 0;
};

class TimerTable {
 public:
  /// Replaces a timer of the same process with the same scope. `wall`: seconds since the epoch now;
  /// only the distance counts, so that a clock that is set later changes no timer. False: the table
  /// is full.
  [[nodiscard]] bool set(const TimerRequest& request, unsigned long long process_started,
                         TimePoint now, double wall);
  /// A timer that is not there is no mistake: its process may have been forgotten.
  void release(const TimerRequest& request) { timers_.erase({request.pid, request.scope}); }
  void forget(int pid);
  /// Removes those that are due, the earliest first.
  [[nodiscard]] std::vector<WorkerTimer> take_due(TimePoint now);
  /// It expired before its worker takes part in a round: it counts from start_held() on, again from
  /// its beginning, unless it is released before.
  void hold(WorkerTimer timer);
  void start_held(TimePoint now);
  /// The workers were stopped for so long.
  void extend(Duration by);
  [[nodiscard]] std::optional<TimePoint> next() const;
  [[nodiscard]] std::vector<int> pids() const;
  [[nodiscard]] bool full() const;

 private:
  std::map<std::pair<int, std::string>, WorkerTimer> timers_;
};

}  // namespace ddprun
