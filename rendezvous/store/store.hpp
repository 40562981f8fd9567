// The key-value store: keys, queues, waits and barriers. Pure: step() takes one request and yields
// the reply to the caller, the connections to wake, and possibly the reason to close the caller. No
// socket, clock or log.
//
// Thread rule: one thread. The Memory must outlive all Values that the store hands out.
#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/keyed_hash.hpp"
#include "rendezvous/store/refusal.hpp"
#include "rendezvous/store/replies.hpp"
#include "rendezvous/store/request.hpp"
#include "rendezvous/store/waits.hpp"

namespace ddprun::store {

class Store {
 public:
  /// Both must outlive the store.
  Store(const Limits& limits, Memory& memory);
  ~Store();
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  /// Executes one request of `connection` and appends the reply, if it is available now, to
  /// `replies`. On a refusal, close the connection and call on_disconnect(); the request had no
  /// effect.
  [[nodiscard]] std::optional<Refusal> step(ConnectionId connection, Request& request,
                                            ReplyQueue& replies);
  /// The connections whose pending WAIT or BARRIER the last step completed: send each the byte 0.
  /// Includes the caller only if it waits.
  [[nodiscard]] const std::vector<ConnectionId>& woken() const { return woken_; }
  /// Call when a connection is closed: drops what it waits for, and what of its request is left.
  void on_disconnect(ConnectionId connection);
  /// Of the names that were waited for by connections that are closed, frees at most `names`. True:
  /// others are left, and it is to be called again.
  bool drop_some(std::size_t names);

  /// Whether step() has only begun the last request of a connection, because it has more than
  /// Limits::names_per_turn names: call go_on() until it is finished, and step() not before.
  /// Meanwhile other connections may change what it has visited already.
  [[nodiscard]] bool is_unfinished(ConnectionId connection) const {
    return unfinished_.contains(connection);
  }
  /// Carries out at most `names` names more of it. On a refusal as step().
  [[nodiscard]] std::optional<Refusal> go_on(ConnectionId connection, std::size_t names,
                                             ReplyQueue& replies);

  /// What a connection waits for: the first name that is missing, and how many. Valid until the
  /// next step.
  struct Pending {
    std::string_view name{};
    std::size_t missing = 0;  // 0: it does not wait
  };
  [[nodiscard]] Pending pending(ConnectionId connection) const;

  /// Call after each step with LIST_KEYS, which has told only the number of keys: appends at most
  /// `keys` of the list to the replies of that connection. True: others follow. Until then a reply
  /// to anything else must wait.
  [[nodiscard]] bool list_more(ConnectionId connection, std::size_t keys) {
    return listings_.more(connection, keys);
  }

  /// Deletes everything. Only while no connection waits or reads a list.
  void forget();
  /// The same in parts of at most `names`: the store is empty after the first call. True: call it
  /// again.
  [[nodiscard]] bool forget_some(std::size_t names);

  [[nodiscard]] std::size_t keys() const { return listings_.keys(); }
  [[nodiscard]] std::size_t waits() const { return waits_.size(); }
  /// Number of names that exist as a key or queue, or are awaited.
  [[nodiscard]] std::size_t names() const { return entries_.size(); }

 private:
  /// Everything stored under one name. Derives from WaitList so that a link of the list leads back
  /// to its entry.
  struct Entry : Waits::WaitList, Listed {
    Value value;                               // null if the key does not exist
    std::unique_ptr<std::deque<Value>> queue;  // null if the queue does not exist; never empty
    [[nodiscard]] bool ready() const { return value || queue != nullptr; }
    [[nodiscard]] bool unused() const { return !ready() && empty(); }
  };
  using Refused = std::optional<Refusal>;
  /// Overhead of a queue element besides its value: deque slot and allocator.
  static constexpr std::size_t kElementBytes = 32;
  /// The entries of several names, found or created atomically: all or none.
  struct Entries {
    std::vector<Entry*> all;      // in request order; a repeated name repeats its entry
    std::vector<Entry*> created;  // the newly created entries, each once
  };

  /// A request that is carried out in parts.
  struct Unfinished {
    Opcode op = Opcode::kCheck;
    KeyList keys;
    std::size_t at = 0;  // the next one
    std::size_t cost = 0;
  };
  Refused begin_parts(ConnectionId connection, Request& request);
  Refused visit(ConnectionId connection, Unfinished& request, ReplyQueue& replies);
  void finish_parts(ConnectionId connection, ReplyQueue& replies);
  void forget_parts(ConnectionId connection);
  Refused carry_out(ConnectionId connection, Request& request, ReplyQueue& replies);
  Refused set(Request& request);
  Refused compare_set(Request& request, ReplyQueue& replies);
  Refused add(const Request& request, ReplyQueue& replies);
  Refused append(Request& request);
  Refused multi_set(Request& request);
  Refused multi_get(const Request& request, ReplyQueue& replies) const;
  Refused wait(ConnectionId connection, const Request& request, ReplyQueue& replies);
  Refused barrier(ConnectionId connection, const Request& request, ReplyQueue& replies);
  Refused queue_push(Request& request);
  Refused list_keys(ConnectionId connection, ReplyQueue& replies);
  void queue_pop(const Request& request, ReplyQueue& replies);
  void queue_len(const Request& request, ReplyQueue& replies) const;
  void get(const Request& request, ReplyQueue& replies) const;
  void delete_key(const Request& request, ReplyQueue& replies);
  void cancel_wait(ConnectionId connection, ReplyQueue& replies);

  [[nodiscard]] Entry* find(std::string_view name);
  [[nodiscard]] const Entry* find(std::string_view name) const;
  [[nodiscard]] bool all_ready(const KeyList& keys) const;
  Refused find_or_create(std::string_view name, Entry*& entry);
  Refused find_or_create_all(const KeyList& keys, Entries& entries);
  void erase_unused(const std::vector<Entry*>& created);
  void erase_if_unused(Entry& entry);
  Refused put(Entry& entry, Payload& payload);
  Refused put_number(Entry& entry, std::int64_t number);
  Refused add_waits(ConnectionId connection, const std::vector<Entry*>& missing);
  void wake_waiters(Entry& entry, Opcode op, KeyChange change);
  [[nodiscard]] Refusal full(std::size_t more) const;

  const Limits& limits_;
  Memory& memory_;
  using EntryMap = std::unordered_map<std::string, Entry, KeyedHash, std::equal_to<>>;
  EntryMap entries_;
  EntryMap forgotten_;  // being deleted
  Waits waits_;
  std::unordered_map<ConnectionId, Unfinished> unfinished_;
  Listings listings_;
  std::vector<ConnectionId> woken_;
};

}  // namespace ddprun::store
