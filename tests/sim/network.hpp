// A deterministic world's time and wires: an event queue, node clocks that drift, and connections
// that keep their order, are slow, break or fall silent. Single thread, everything decided by the
// seed.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <queue>
#include <random>
#include <variant>
#include <vector>

#include "base/clock.hpp"
#include "rendezvous/protocol/messages.hpp"

namespace ddprun::sim {

using std::chrono::milliseconds;
using std::chrono::seconds;

class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}
  /// low..high, both included.
  [[nodiscard]] int between(int low, int high) {
    const auto span = static_cast<std::uint64_t>(high - low) + 1;
    return low + static_cast<int>(engine_() % span);
  }
  [[nodiscard]] bool chance(int percent) { return between(1, 100) <= percent; }
  [[nodiscard]] Duration between(Duration low, Duration high) {
    const auto span = static_cast<std::uint64_t>((high - low).count()) + 1;
    return low + Duration(static_cast<Duration::rep>(engine_() % span));
  }

 private:
  std::mt19937_64 engine_;  // its output is fixed by the standard, unlike the distributions'
};

class Timeline {
 public:
  [[nodiscard]] TimePoint now() const { return now_; }
  void at(TimePoint when, std::function<void()> what);
  void after(Duration delay, std::function<void()> what) { at(now_ + delay, std::move(what)); }
  /// Runs the next event if it is due by `limit`; else moves to `limit` and returns false.
  bool run_one(TimePoint limit);

 private:
  struct Entry {
    TimePoint when;
    std::uint64_t order;
    std::function<void()> what;
  };
  struct Later {
    bool operator()(const Entry& left, const Entry& right) const {
      return left.when != right.when ? left.when > right.when : left.order > right.order;
    }
  };
  std::priority_queue<Entry, std::vector<Entry>, Later> queue_;
  std::uint64_t order_ = 0;
  TimePoint now_ = TimePoint(seconds(1000));
  int same_instant_ = 0;  // events since time last moved
};

/// One machine's monotonic clock: another origin and another speed.
struct DriftingClock {
  double rate = 1.0;
  Duration offset{0};
  [[nodiscard]] TimePoint local(TimePoint global) const;
  /// The first global instant at which local() is at least `when`.
  [[nodiscard]] TimePoint global(TimePoint when) const;
};

/// The end of a stream: what was sent before arrives first.
struct Fin {};
using Item = std::variant<protocol::Message, Fin>;

/// One direction of a connection.
struct Pipe {
  std::deque<std::pair<TimePoint, Item>> items;
  TimePoint last_arrival{};
  bool scheduled = false;
  bool closed = false;  // nothing is delivered any more
};

}  // namespace ddprun::sim
