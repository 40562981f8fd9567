// WriteTimes: when a stream was written to, and how much, to set its last bytes in order with those
// of another stream. Remembers the last half minute or so. Pure, no thread rule.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>

#include "base/clock.hpp"

namespace ddprun {

class WriteTimes {
 public:
  void add(TimePoint now, std::size_t bytes) {
    if (spells_.empty() || now - spells_.back().begin >= kSpell) {
      spells_.push_back({now, now, 0});
      if (spells_.size() > kSpellsMax) spells_.pop_front();
    }
    spells_.back().last = now;
    spells_.back().bytes += bytes;
  }
  void clear() { spells_.clear(); }

  struct Later {
    std::uint64_t bytes = 0;
    Duration time{0};  // from the first to the last of them
  };
  /// What was written since this time, but for the rest of a spell that had begun.
  [[nodiscard]] Later since(TimePoint when) const {
    Later later;
    TimePoint first = TimePoint::max();
    for (const Spell& spell : spells_) {
      if (spell.begin <= when) continue;
      first = std::min(first, spell.begin);
      later.bytes += spell.bytes;
      later.time = spell.last - first;
    }
    return later;
  }

 private:
  static constexpr Duration kSpell = std::chrono::milliseconds(500);
  static constexpr std::size_t kSpellsMax = 64;
  struct Spell {
    TimePoint begin;
    TimePoint last;
    std::uint64_t bytes = 0;
  };
  std::deque<Spell> spells_;
};

}  // namespace ddprun
