// Which connections wait for which names. Each (connection, name) pair is a link in two lists, so
// that waking the waiters of a name and dropping the waits of a connection take time proportional
// to their number. Pure. Thread rule: one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

namespace ddprun::store {

/// Identifies a connection of the server. Never reused.
enum class ConnectionId : std::uint64_t {};

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
  /// Drops all waits of `connection` and appends the lists it was in to `affected`. Returns false
  /// if it had none.
  bool drop(ConnectionId connection, std::vector<WaitList*>& affected);

  /// Number of pending (connection, name) pairs.
  [[nodiscard]] std::size_t size() const { return links_; }

 private:
  void unlink(Link& link);

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
};

}  // namespace ddprun::store
