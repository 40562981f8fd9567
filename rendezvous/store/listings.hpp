// Listings: the replies to LIST_KEYS that are being written. Each is the keys of one moment, told a
// few at a time, so that a long list delays no other client: what becomes a key later is not in it,
// and a key that is deleted before its turn is told at once. Pure. Thread rule: one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>

#include "rendezvous/store/replies.hpp"
#include "rendezvous/store/waits.hpp"

namespace ddprun::store {

/// A name; while it is a key, with its neighbours in the order in which they became keys.
struct Listed {
  const std::string* name = nullptr;
  Listed* before = nullptr;
  Listed* after = nullptr;
  std::uint64_t number = 0;  // grows, and is never used twice
};

class Listings {
 public:
  /// The name has become a key.
  void add(Listed& key);
  /// It is one no longer.
  void remove(Listed& key);

  [[nodiscard]] std::size_t keys() const { return keys_; }
  [[nodiscard]] std::size_t name_bytes() const { return name_bytes_; }

  /// Begins a list of all keys with their number. `replies` must outlive it. One per connection.
  void begin(ConnectionId connection, ReplyQueue& replies);
  /// At most `keys` more. True: others follow.
  [[nodiscard]] bool more(ConnectionId connection, std::size_t keys);
  /// The connection is closed.
  void drop(ConnectionId connection) { listings_.erase(connection); }

 private:
  struct Listing {
    ReplyQueue* replies;
    Listed* next;
    std::uint64_t last;
    [[nodiscard]] bool covers(const Listed& key) const {
      return next != nullptr && key.number >= next->number && key.number <= last;
    }
  };

  Listed* first_ = nullptr;
  Listed* last_ = nullptr;
  std::uint64_t added_ = 0;
  std::size_t keys_ = 0;
  std::size_t name_bytes_ = 0;
  std::unordered_map<ConnectionId, Listing> listings_;
};

}  // namespace ddprun::store
