// SparePool: which processes wait for the place of a lost rank (--spares), and when another one is
// started. Pure: no process, clock or log.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <vector>

#include "base/clock.hpp"

namespace ddprun {

// With --spares: one that ended while it waited is replaced after so long, twice as long after each
// that follows, until one is used.
inline constexpr Duration kSpareAgainMin = std::chrono::seconds(1);
inline constexpr Duration kSpareAgainMax = std::chrono::minutes(1);

class SparePool {
 public:
  /// kOneByOne: the next one is started when the one before waits, so that ranks which train lose
  /// little of the processors.
  enum class Pace { kOneByOne, kAtOnce };
  /// From now on there are to be so many.
  void want(int spares, Pace pace) { wanted_ = Wanted{spares, pace}; }
  /// A round begins or ends: none is started, because it would compete with its ranks.
  void pause() { wanted_.reset(); }
  /// None is started any more.
  void close() { closed_ = true; }

  /// The number of one that is to be started now, and counts from now on.
  [[nodiscard]] std::optional<int> start(TimePoint now);
  /// When start() may have one, because one that waited has ended; none: something else decides.
  [[nodiscard]] std::optional<TimePoint> due() const;
  /// It has been loaded, and waits for a place.
  void waits(int spare);
  /// The one that has waited longest gets a place.
  [[nodiscard]] std::optional<int> take();
  /// More of them are there than are wanted: these are to be ended, and are not counted any more.
  [[nodiscard]] std::vector<int> surplus();
  enum class Ended { kUnknown, kBeforeItWaited, kWhileItWaited };
  /// After one that did not come to wait none is started any more: the next one would do the same.
  Ended ended(int spare, TimePoint now);

  [[nodiscard]] bool is_waiting(int spare) const;
  [[nodiscard]] bool had_any() const { return last_ > 0; }

 private:
  struct Wanted {
    int spares = 0;
    Pace pace = Pace::kOneByOne;
  };
  [[nodiscard]] bool may_start() const;

  std::optional<Wanted> wanted_{};
  std::map<int, bool> live_{};  // by number: whether it waits
  int last_ = 0;
  int lost_ = 0;            // while they waited, since one was used
  TimePoint not_before_{};  // another start
  bool closed_ = false;
};

}  // namespace ddprun
