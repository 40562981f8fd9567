// Turns: connections that make much work, of all addresses one after the other, so that one address
// with many delays itself. An address that has used kShareMax of a kWindow continues in turns of
// kShareTurn, between which the others are served. Pure, single owner.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <unordered_map>

#include "base/clock.hpp"

namespace ddprun::store {

inline constexpr Duration kWindow = std::chrono::milliseconds(10);
inline constexpr Duration kShareMax = kWindow / 2;
inline constexpr Duration kShareTurn = std::chrono::milliseconds(1);

class Turns {
 public:
  using Share = std::uint64_t;  // of an address
  using Id = std::uint64_t;     // of a connection

  /// Whether a connection of the address has to wait for its turn.
  [[nodiscard]] bool has_used_up(Share share) const;
  void spent(Share share, Duration time) { spent_[share] += time; }
  void wait(Share share, Id id);
  /// Time has passed.
  void tick(TimePoint now);

  [[nodiscard]] bool empty() const { return rotation_.empty(); }
  /// Begins the turn of the address that waits longest. Only if one does.
  [[nodiscard]] Share next();
  /// A connection for the rest of that turn; it may be closed by now. None: the turn is over.
  [[nodiscard]] std::optional<Id> take(Share share);

 private:
  std::unordered_map<Share, Duration> spent_;
  std::unordered_map<Share, std::deque<Id>> waiting_;
  std::deque<Share> rotation_;
  TimePoint window_end_{};
};

}  // namespace ddprun::store
