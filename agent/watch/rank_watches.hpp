// What tells that ranks of this node hang, sleep in the kernel, wait for the user, or have finished
// early, and when to look again. Pure, no thread rule.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/rank_progress.hpp"
#include "base/types.hpp"
#include "base/worker_exit.hpp"

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

/// Whether any rank of this node makes progress, from samples of what the kernel counts. A rank
/// makes progress when it uses more than a hundredth of a processor, reads, writes, waits for pages
/// or for I/O that continues, gets or sends bytes over TCP, starts or ends a process, or reports a
/// step; one that waits for the user, at a prompt or in a debugger, is not judged. So a rank that
/// spins while it waits is never found to hang, and one that only sleeps always is.
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

/// Which workers of this node have been in uninterruptible sleep (state D) for
/// TORCHELASTIC_UNINTERRUPTIBLE_STATE_TIMEOUT, from looks at the state of each. A worker that was
/// not in it at one look begins again.
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

// Ranks that exited with code 0 while others continue are named at these times after the first one.
inline constexpr Duration kFirstPartialNote = std::chrono::seconds(5);
inline constexpr Duration kSecondPartialNote = std::chrono::minutes(1);

/// Some ranks exited with code 0 while others continue. That may be meant, or a rank that will be
/// waited for without end: it is said soon, again after a minute, and then no more.
class EarlyFinish {
 public:
  enum class Due { kNothing, kFirstNote, kSecondNote, kGiveUp };

  /// `timeout`: --finish-timeout; none: the others may take as long as they want.
  explicit EarlyFinish(std::optional<Duration> timeout) : timeout_(timeout) {}

  /// The number of ranks that exited with code 0 by themselves, and of those that still run.
  void update(int finished, int running, TimePoint now);
  /// When take() is to be called; none: not before the next update().
  [[nodiscard]] std::optional<TimePoint> next() const;
  /// What is due; each once.
  [[nodiscard]] Due take(TimePoint now);
  /// Since the first of them exited. Only while next() was or is set.
  [[nodiscard]] Duration lasts(TimePoint now) const { return now - *since_; }
  /// What is left of --finish-timeout.
  [[nodiscard]] std::optional<Duration> left(TimePoint now) const;

 private:
  [[nodiscard]] std::optional<TimePoint> next_note() const;

  std::optional<Duration> timeout_;
  std::optional<TimePoint> since_{};
  bool active_ = false;
  bool gave_up_ = false;
  int notes_ = 0;
};

// Where ranks may read a terminal: how often the times of their output are compared; how long after
// its last output a rank is looked at, with a pause that doubles up to kInputLookMax; from which
// pause on all its threads are; and after how long without a wait it has gone on.
inline constexpr Duration kInputTick = std::chrono::seconds(1);
inline constexpr Duration kInputLookMin = std::chrono::milliseconds(500);
inline constexpr Duration kInputLookMax = std::chrono::seconds(10);
inline constexpr Duration kInputCloselyAfter = std::chrono::seconds(4);
inline constexpr Duration kInputForgotten = std::chrono::seconds(10);

/// A rank that runs, and when it last wrote; none: its output does not pass through here.
struct InputRank {
  LocalRank rank{};
  std::optional<TimePoint> written{};
};

/// Which ranks of this node wait for the user to type. All ranks inherit stdin, so a prompt in a
/// file that the user does not see looks like a hang. It is learned from what threads do: soon
/// after output of a rank, which may be a prompt, then less and less often. A rank that answers
/// what was typed and asks again waits all the time. Several ranks that read at once are reported,
/// not prevented: only stopping a rank would keep it from reading.
class InputWatch {
 public:
  struct Look {
    LocalRank rank{};
    bool closely = false;  // at all threads, not the main one alone
  };
  struct News {
    std::vector<LocalRank> began{};    // wait since this look
    std::vector<LocalRank> waiting{};  // all that do
    std::vector<LocalRank> over{};     // have not waited for kInputForgotten
  };

  void begin(TimePoint now) { asked_ = now; }
  /// When to ask what is due; that takes no look by itself.
  [[nodiscard]] TimePoint next() const;
  [[nodiscard]] std::vector<Look> due(const std::vector<InputRank>& ranks, TimePoint now);
  /// `waits`: of each rank of `looks`.
  [[nodiscard]] News found(const std::vector<Look>& looks, const std::vector<bool>& waits,
                           TimePoint now);

 private:
  struct Watched {
    std::optional<TimePoint> written{};
    TimePoint next{};
    Duration pause{};
    std::optional<TimePoint> waited{};  // when it last did
  };
  std::map<int, Watched> ranks_{};  // by local rank
  TimePoint asked_{};
};

}  // namespace ddprun
