// The rule that wakes a waiter of the store. Pure; tests/store/wake_test.cpp has a test per
// sentence.
#pragma once

#include <cstdint>

#include "rendezvous/store/opcode.hpp"

namespace ddprun::store {

enum class Wakes : std::uint8_t { kNobody, kOne, kAll };

/// What a request has left behind under its key.
enum class Aftermath : std::uint8_t {
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
[[nodiscard]] constexpr Wakes who_wakes(Opcode op, Aftermath aftermath) {
  switch (op) {
    case Opcode::kSet:
    case Opcode::kAdd:
    case Opcode::kAppend:
    case Opcode::kMultiSet:
      return Wakes::kAll;
    case Opcode::kCompareSet:
      return aftermath == Aftermath::kAbsent ? Wakes::kNobody : Wakes::kAll;
    case Opcode::kQueuePush:
      return Wakes::kOne;
    case Opcode::kBarrier:
      return aftermath == Aftermath::kComplete ? Wakes::kAll : Wakes::kNobody;
    default:
      return Wakes::kNobody;
  }
}

}  // namespace ddprun::store
