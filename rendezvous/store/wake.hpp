// The rule that wakes a waiter of the store. Pure; tests/store/wake_test.cpp has a test per
// sentence.
#pragma once

#include <cstdint>

#include "rendezvous/store/opcode.hpp"

namespace ddprun::store {

enum class WaitersToWake : std::uint8_t { kNone, kOne, kAll };

/// What a request has left behind under its key.
enum class KeyChange : std::uint8_t {
  kAbsent,    // the key has no value
  kPresent,   // the key has a value
  kComplete,  // BARRIER: the key has a value, and this caller was the last one missing
};

/// Who of those that WAIT for a key (or stand in a BARRIER on it) hears of a request to that key.
///
/// 1. SET, ADD, APPEND and MULTI_SET wake all.
/// 2. COMPARE_SET wakes all if the key exists afterwards; a failed one on a missing key wakes
/// nobody.
/// 3. QUEUE_PUSH wakes one, who has waited longest.
/// 4. BARRIER wakes all when its last caller arrives, and nobody before.
/// 5. Nothing else wakes: neither a deletion nor a look.
[[nodiscard]] constexpr WaitersToWake waiters_to_wake(Opcode op, KeyChange change) {
  switch (op) {
    case Opcode::kSet:
    case Opcode::kAdd:
    case Opcode::kAppend:
    case Opcode::kMultiSet:
      return WaitersToWake::kAll;
    case Opcode::kCompareSet:
      return change == KeyChange::kAbsent ? WaitersToWake::kNone : WaitersToWake::kAll;
    case Opcode::kQueuePush:
      return WaitersToWake::kOne;
    case Opcode::kBarrier:
      return change == KeyChange::kComplete ? WaitersToWake::kAll : WaitersToWake::kNone;
    default:
      return WaitersToWake::kNone;
  }
}

}  // namespace ddprun::store
