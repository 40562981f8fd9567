// The key-value store itself: keys, queues, waits and barriers. Pure: one request goes in, replies
// to the caller, the connections to wake and possibly the reason to close the caller come out. No
// socket, clock or log.
//
// Thread rule: one thread. Values it hands out must be gone before the Memory is.
#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "rendezvous/store/limits.hpp"
#include "rendezvous/store/refusal.hpp"
#include "rendezvous/store/replies.hpp"
#include "rendezvous/store/request.hpp"
#include "rendezvous/store/waits.hpp"
#include "rendezvous/store/wake.hpp"

namespace ddprun::store {

class Store {
 public:
  /// Both must outlive the store.
  Store(const Limits& limits, Memory& memory);
  ~Store();
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  /// Carries out one request of `who` and appends its reply, if it has one now, to `replies`.
  /// A refusal means: close `who` (and call gone()); the request has changed nothing.
  [[nodiscard]] std::optional<Refusal> step(ConnectionId who, Request& request,
                                            ReplyQueue& replies);
  /// Whose pending WAIT or BARRIER the last step ended: send each the byte 0. Never the caller
  /// itself unless it waits.
  [[nodiscard]] const std::vector<ConnectionId>& woken() const { return woken_; }
  /// The connection is closed: forgets what it waits for.
  void gone(ConnectionId who);

  [[nodiscard]] std::size_t keys() const { return keys_; }
  [[nodiscard]] std::size_t waits() const { return waits_.size(); }
  /// Names known in any way: as key, as queue, or waited for.
  [[nodiscard]] std::size_t names() const { return entries_.size(); }

 private:
  /// All there is under one name. Being the line itself, it is found from those who stand in it.
  struct Entry : Waits::Line {
    Value value;                               // null: no such key
    std::unique_ptr<std::deque<Value>> queue;  // null: no such queue; never empty
    const std::string* name = nullptr;
    [[nodiscard]] bool ready() const { return value || queue != nullptr; }
    [[nodiscard]] bool unused() const { return !ready() && empty(); }
  };
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const {
      return std::hash<std::string_view>()(text);
    }
  };
  using Refused = std::optional<Refusal>;
  /// What an element of a queue costs besides its value: its place and the allocator's own.
  static constexpr std::size_t kElementBytes = 32;
  /// The entries of many names, found or made in one step: all of them or none.
  struct Entries {
    std::vector<Entry*> all;   // in request order, where a name may be repeated
    std::vector<Entry*> made;  // those that did not exist, each once
  };

  Refused carry_out(ConnectionId who, Request& request, ReplyQueue& replies);
  Refused set(Request& request);
  Refused compare_set(Request& request, ReplyQueue& replies);
  Refused add(const Request& request, ReplyQueue& replies);
  Refused append(Request& request);
  Refused multi_set(Request& request);
  Refused multi_get(const Request& request, ReplyQueue& replies) const;
  Refused wait(ConnectionId who, const Request& request, ReplyQueue& replies);
  Refused barrier(ConnectionId who, const Request& request, ReplyQueue& replies);
  Refused queue_push(Request& request);
  Refused list_keys(ReplyQueue& replies) const;
  void queue_pop(const Request& request, ReplyQueue& replies);
  void queue_len(const Request& request, ReplyQueue& replies) const;
  void get(const Request& request, ReplyQueue& replies) const;
  void delete_key(const Request& request, ReplyQueue& replies);
  void cancel_wait(ConnectionId who, ReplyQueue& replies);

  [[nodiscard]] Entry* find(std::string_view name);
  [[nodiscard]] const Entry* find(std::string_view name) const;
  [[nodiscard]] bool all_ready(const KeyList& keys) const;
  Refused obtain(std::string_view name, Entry*& entry);
  Refused obtain_all(const KeyList& keys, Entries& entries);
  void forget_all(const std::vector<Entry*>& made);
  void forget_if_unused(Entry& entry);
  Refused put(Entry& entry, Payload& payload);
  Refused put_number(Entry& entry, std::int64_t number);
  void count_key(const Entry& entry);
  Refused join_lines(ConnectionId who, const std::vector<Entry*>& missing);
  void wake_waiters(Entry& entry, Opcode op, KeyChange change);
  [[nodiscard]] Refusal full(std::size_t more) const;

  const Limits& limits_;
  Memory& memory_;
  std::unordered_map<std::string, Entry, Hash, std::equal_to<>> entries_;
  Waits waits_;
  std::size_t keys_ = 0;
  std::size_t key_bytes_ = 0;  // of plain keys: what LIST_KEYS would send
  std::vector<ConnectionId> woken_;
};

}  // namespace ddprun::store
