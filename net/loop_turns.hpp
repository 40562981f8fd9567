// LoopTurns: how long the turns of a thread's event loop take: from the return of one wait for
// events to the next wait. Nothing else happens meanwhile: no heartbeat, no signal, no exit. Always
// measured, at two reads of the monotonic clock a turn; processor time only of turns that are long,
// because that clock is a system call. Thread rule: each thread has its own.
#pragma once

#include <sys/epoll.h>

#include <functional>

#include "base/clock.hpp"

namespace ddprun::net {

struct LoopTurn {
  Duration took{};
  /// Of that, processor time of this thread, at most kCpuBaseAge too much: a thread that others
  /// keep from running takes longer.
  Duration cpu{};
};

/// A turn that takes longer is told, and its processor time is read.
inline constexpr Duration kLongTurn = std::chrono::milliseconds(20);
/// How old the reading may be from which processor time is counted.
inline constexpr Duration kCpuBaseAge = std::chrono::milliseconds(20);

class LoopTurns {
 public:
  using ReadCpu = Duration (*)();
  explicit LoopTurns(ReadCpu read_cpu = cpu_of_this_thread) : read_cpu_(read_cpu) {}

  /// The wait has returned, or the loop begins.
  void begin(TimePoint now);
  /// The loop waits again.
  void end(TimePoint now);
  /// The turn that took longest, and the most processor time that one took; without those that are
  /// not told, if any is.
  [[nodiscard]] const LoopTurn& longest() const { return longest_; }
  [[nodiscard]] Duration most_cpu() const { return most_cpu_; }
  /// Is told of each turn that is long and longer than all before, in the next turn.
  void on_longer(std::function<void(const LoopTurn&)> told) { told_ = std::move(told); }

  /// Of the loop that runs on this thread.
  [[nodiscard]] static LoopTurns& here();

 private:
  [[nodiscard]] static Duration cpu_of_this_thread();

  ReadCpu read_cpu_;
  bool runs_ = false;
  bool is_news_ = false;
  TimePoint began_{};
  TimePoint cpu_read_at_{};
  Duration cpu_base_{};
  LoopTurn longest_{};
  Duration most_cpu_{};
  std::function<void(const LoopTurn&)> told_{};
};

/// epoll_wait(2), as the end of one turn and the beginning of the next: what Asio's reactor calls
/// (asio.cpp).
int epoll_wait_between_turns(int set, epoll_event* events, int events_max, int timeout_ms);

}  // namespace ddprun::net
