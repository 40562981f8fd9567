// Waits: which connections wait for which names, and the rules for waking them. Each (connection,
// name) pair is a link in two lists, so that waking the waiters of a name and dropping the waits of
// a connection take time proportional to their number. Pure. Thread rule: one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <unordered_map>
#include <vector>

#include "rendezvous/store/request.hpp"

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
///
/// tests/store/wake_test.cpp has one test per rule.
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

class Waits {
 public:
  Waits();
  ~Waits();
  Waits(const Waits&) = delete;
  Waits& operator=(const Waits&) = delete;

  struct Link;
  struct Wait;
  /// The waiters of one name, longest waiting first. Part of that name's entry, whose address is
  /// stable.
  struct WaitList {
    Link* head = nullptr;
    Link* tail = nullptr;
    [[nodiscard]] bool empty() const { return head == nullptr; }
  };

  /// Registers `connection` as waiting for all of `lists` (at least one). Repeated lists count
  /// once.
  void add(ConnectionId connection, const std::vector<WaitList*>& lists);
  /// The same in parts: begin() for at most `most` lists, add_to() for each, end(). Until then the
  /// connection is not woken. end() returns whether it waits: some list of it is still missing.
  void begin(ConnectionId connection, std::size_t most);
  void add_to(ConnectionId connection, WaitList& list);
  [[nodiscard]] bool end(ConnectionId connection);
  [[nodiscard]] bool waiting(ConnectionId connection) const {
    return waiting_.contains(connection);
  }
  /// What `connection` still waits for: one list, and how many in all; null if it waits for none.
  struct Pending {
    const WaitList* first = nullptr;
    std::size_t missing = 0;
  };
  [[nodiscard]] Pending pending(ConnectionId connection) const;
  /// Marks the name as present for its longest waiter. If it was the last name that this waiter was
  /// missing, appends the waiter to `woken`.
  void wake_one(WaitList& list, std::vector<ConnectionId>& woken);
  void wake_all(WaitList& list, std::vector<ConnectionId>& woken);
  /// `connection` waits no more. Its links are unlinked by drop_some(). Returns false if it had
  /// none.
  bool drop(ConnectionId connection);
  /// Unlinks at most `links` of those that were dropped, and appends the lists that are empty then
  /// to `affected`. True: others are left.
  bool drop_some(std::size_t links, std::vector<WaitList*>& affected);
  [[nodiscard]] bool has_dropped() const { return !dropped_.empty(); }

  /// Number of pending (connection, name) pairs.
  [[nodiscard]] std::size_t size() const { return links_; }

 private:
  void link(Wait& wait, WaitList& list);
  void unlink(Link& link);

  std::deque<std::unique_ptr<Wait>> dropped_;  // with links that are in lists
  std::unordered_map<ConnectionId, std::unique_ptr<Wait>> waiting_;
  std::size_t links_ = 0;
};

struct Waits::Link {
  WaitList* list = nullptr;  // null once woken
  Wait* wait = nullptr;
  Link* previous = nullptr;
  Link* next = nullptr;
};

struct Waits::Wait {
  ConnectionId connection{};
  std::size_t missing = 0;
  std::vector<Link> links;  // never resized while linked
  bool is_dropped = false;
};

}  // namespace ddprun::store
