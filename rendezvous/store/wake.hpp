// The rules for waking waiters. Pure; tests/store/wake_test.cpp has one test per rule.
#pragma once

#include <cstdint>

#include "rendezvous/store/opcode.hpp"

namespace ddprun::store {

enum class WaitersToWake : std::uint8_t { kNone, kOne, kAll };

/// The state of a key after a request.
enum class KeyChange : std::uint8_t {
  kAbsent,    // the key has no value
  kPresent,   // the key has a value
  kComplete,  // BARRIER: the key has a value, and this was the last caller
};

/// Which connections blocked in a WAIT or BARRIER on a key are woken by a request to that key.
///
/// 1. SET, ADD, APPEND and MULTI_SET wake all.
/// 2. COMPARE_SET wakes all if the key exists afterwards; if it fails on a missing key it wakes
/// none.
/// 3. QUEUE_PUSH wakes the longest waiter.
/// 4. BARRIER wakes all when its last caller arrives, and none before.
/// 5. No other request wakes a waiter: neither a deletion nor a read.
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
