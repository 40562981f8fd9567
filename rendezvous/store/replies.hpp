// ReplyQueue: the ordered replies that are to be sent to one connection, and Listings, the replies
// to LIST_KEYS that are being written. Small replies are copied into one buffer; large values are
// shared with the map. Pure: a queue fills iovecs, which the server sends.
//
// Thread rule: one thread. Copied bytes are charged to the given budget, which must outlive the
// queue, until they are sent.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/quota.hpp"
#include "rendezvous/store/request.hpp"

namespace ddprun::store {

class ReplyQueue {
 public:
  explicit ReplyQueue(Budget& copied_bytes) : copied_(&copied_bytes) {}
  ~ReplyQueue();
  ReplyQueue(const ReplyQueue&) = delete;
  ReplyQueue& operator=(const ReplyQueue&) = delete;

  void put_u8(std::uint8_t number);
  void put_u32(std::uint32_t number);
  void put_i64(std::int64_t number);
  /// Length and bytes, copied.
  void put_bytes(std::string_view bytes);
  /// Length and bytes; large ones are shared, not copied.
  void put_value(const Value& value);
  /// Number of bytes that put_value() would copy.
  [[nodiscard]] static std::size_t copied_size(const Value& value);
  /// Whether the budget allows `more` copied bytes. Check this before a reply of variable size.
  [[nodiscard]] bool fits(std::size_t more) const { return copied_->allows(more); }
  [[nodiscard]] std::size_t bytes_with(std::size_t more) const { return copied_->used() + more; }

  [[nodiscard]] bool empty() const { return unsent_ == 0; }
  [[nodiscard]] std::size_t unsent() const { return unsent_; }
  /// Allocated bytes of the queue, without values.
  [[nodiscard]] std::size_t memory() const;
  /// Fills `parts` from the front of the queue; returns how many were filled.
  [[nodiscard]] std::size_t gather(std::span<iovec> parts) const;
  /// Removes `bytes` sent bytes from the front.
  void sent(std::size_t bytes);

 private:
  struct Shared {
    std::size_t after;  // number of bytes of text_ that precede it
    Value value;
  };

  void put(std::string_view bytes);
  void clear();
  void drop_sent();

  Budget* copied_;
  std::string text_;
  std::vector<Shared> shared_;
  std::size_t text_sent_ = 0;
  std::size_t shared_sent_ = 0;   // values sent completely
  std::size_t value_offset_ = 0;  // sent bytes of the front value
  std::size_t unsent_ = 0;
};

/// A name; while it is a key, with its neighbours in the order in which they became keys.
struct Listed {
  const std::string* name = nullptr;
  Listed* before = nullptr;
  Listed* after = nullptr;
  std::uint64_t number = 0;  // grows, and is never used twice
};

/// Each list is the keys of one moment, told a few at a time, so that a long one delays no other
/// client: what becomes a key later is not in it, and a key that is deleted before its turn is told
/// at once.
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
