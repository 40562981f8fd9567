// HangWatch: whether any rank of this node makes progress, from samples of what the kernel counts.
// A rank makes progress when it uses more than a hundredth of a processor, reads, writes, waits for
// pages or for I/O that continues, gets or sends bytes over TCP, starts or ends a process, or
// reports a step; one that waits for the user, at a prompt or in a debugger, is not judged. So a
// rank that spins while it waits is never found to hang, and one that only sleeps always is. Pure,
// no thread rule.
#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

#include "base/clock.hpp"
#include "base/rank_progress.hpp"

namespace ddprun {

// With --hang-timeout /proc is read four times within the limit, at intervals between these.
inline constexpr Duration kHangSampleMin = std::chrono::milliseconds(100);
inline constexpr Duration kHangSampleMax = std::chrono::seconds(10);
// A sample so much later than due is one after a suspension; a busy machine delays it, too.
inline constexpr Duration kHangSampleLate = std::chrono::seconds(2);
// A rank that uses less than this part of one processor does not compute: threads that only look
// after others wake up now and then.
inline constexpr int kHangIdleShare = 100;
// Nor does one that reads, or gets and sends over TCP, fewer bytes a second than these, or touches
// fewer pages: threads wake each other by pipes, and clients keep their connections alive.
inline constexpr std::uint64_t kHangIdleBytes = 256;
inline constexpr std::uint64_t kHangIdleFaults = 10;

class HangWatch {
 public:
  /// `limit`: --hang-timeout, above 0.
  explicit HangWatch(Duration limit);

  /// All workers run; samples follow.
  void begin(TimePoint now);
  /// When the next sample is due: a hang is noticed within a quarter of the limit.
  [[nodiscard]] TimePoint next() const { return sampled_ + interval_; }
  /// Takes a sample of the ranks that run. How long no rank has made progress. A sample that is
  /// late, because this process or the machine was suspended, says nothing about the ranks: then
  /// the time starts again.
  [[nodiscard]] Duration sample(const std::vector<RankProgress>& ranks, TimePoint now);
  /// The same for a look between two samples, which it does not replace.
  [[nodiscard]] Duration look(const std::vector<RankProgress>& ranks, TimePoint now) const;
  [[nodiscard]] Duration limit() const { return limit_; }
  /// Whether the last sample showed no progress: then the next one is a CloseLook, too.
  [[nodiscard]] bool is_quiet() const { return quiet_since_ != sampled_; }

 private:
  [[nodiscard]] bool is_late(TimePoint now) const;
  [[nodiscard]] bool shows_progress(const std::vector<RankProgress>& ranks, Duration since) const;

  Duration limit_;
  Duration interval_;
  TimePoint sampled_{};
  TimePoint quiet_since_{};
  std::vector<RankProgress> last_{};
};

}  // namespace ddprun
