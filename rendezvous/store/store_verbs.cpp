// The commands of the store, one function each. Which waiters they wake is defined in wake.hpp.
#include "rendezvous/store/number.hpp"
#include "rendezvous/store/store.hpp"

namespace ddprun::store {

Store::Refused Store::set(Request& request) {
  Entry* entry = nullptr;
  if (auto refused = find_or_create(request.key, entry)) return refused;
  if (auto refused = put(*entry, request.value)) {
    erase_if_unused(*entry);
    return refused;
  }
  wake_waiters(*entry, request.op, KeyChange::kPresent);
  return std::nullopt;
}

// Callers compare the reply with the desired value. If the key is missing but a value was expected,
// the reply is that expected value: the caller cannot learn that the key is missing.
Store::Refused Store::compare_set(Request& request, ReplyQueue& replies) {
  const std::string_view expected = request.value.view();
  Entry* entry = find(request.key);
  const bool present = entry != nullptr && entry->value;
  if (!present && !expected.empty()) {
    const std::size_t copied = expected.size();
    if (!replies.fits(copied)) return Refusal(Reason::kTooManyReplies, replies.bytes_with(copied));
    replies.put_bytes(expected);
    if (entry != nullptr) wake_waiters(*entry, request.op, KeyChange::kAbsent);
    return std::nullopt;
  }
  if (!present || entry->value.view() == expected) {
    if (auto refused = find_or_create(request.key, entry)) return refused;
    if (auto refused = put(*entry, request.desired)) {
      erase_if_unused(*entry);
      return refused;
    }
  }
  replies.put_value(entry->value);
  wake_waiters(*entry, request.op, KeyChange::kPresent);
  return std::nullopt;
}

void Store::get(const Request& request, ReplyQueue& replies) const {
  const Entry* entry = find(request.key);
  replies.put_value(entry == nullptr ? Value() : entry->value);
}

Store::Refused Store::add(const Request& request, ReplyQueue& replies) {
  Entry* entry = nullptr;
  if (auto refused = find_or_create(request.key, entry)) return refused;
  const auto old = entry->value ? parse_number(entry->value.view()) : std::int64_t{0};
  if (!old) return Refusal(Reason::kNotANumber);
  const auto sum = checked_add(*old, request.number);
  if (!sum) return Refusal(Reason::kSumOverflows);
  if (auto refused = put_number(*entry, *sum)) {
    erase_if_unused(*entry);
    return refused;
  }
  replies.put_i64(*sum);
  wake_waiters(*entry, request.op, KeyChange::kPresent);
  return std::nullopt;
}

Store::Refused Store::append(Request& request) {
  Entry* entry = nullptr;
  if (auto refused = find_or_create(request.key, entry)) return refused;
  if (!entry->value) {
    if (auto refused = put(*entry, request.value)) {
      erase_if_unused(*entry);
      return refused;
    }
  } else if (!entry->value.append(request.value.view(), memory_)) {
    return full(request.value.view().size());
  }
  wake_waiters(*entry, request.op, KeyChange::kPresent);
  return std::nullopt;
}

void Store::delete_key(const Request& request, ReplyQueue& replies) {
  Entry* entry = find(request.key);
  const bool present = entry != nullptr && entry->value;
  if (present) {
    listings_.remove(*entry);
    entry->value = Value();
    wake_waiters(*entry, request.op, KeyChange::kAbsent);
  }
  replies.put_i64(present ? 1 : 0);
}

// Atomic: every allocation that can fail is made before the first value changes.
Store::Refused Store::multi_set(Request& request) {
  Entries entries;
  if (auto refused = find_or_create_all(request.keys, entries)) return refused;
  for (Payload& value : request.values) {
    if (value.own(memory_)) continue;
    erase_unused(entries.created);
    return full(value.view().size());
  }
  for (std::size_t at = 0; at < entries.all.size(); ++at) {
    (void)put(*entries.all[at], request.values[at]);  // cannot fail: the value is owned
    wake_waiters(*entries.all[at], request.op, KeyChange::kPresent);
  }
  return std::nullopt;
}

Store::Refused Store::multi_get(const Request& request, ReplyQueue& replies) const {
  std::size_t copied = 0;
  for (std::size_t at = 0; at < request.keys.size(); ++at) {
    const Entry* entry = find(request.keys[at]);
    copied += ReplyQueue::copied_size(entry == nullptr ? Value() : entry->value);
  }
  if (!replies.fits(copied)) return Refusal(Reason::kTooManyReplies, replies.bytes_with(copied));
  for (std::size_t at = 0; at < request.keys.size(); ++at) {
    const Entry* entry = find(request.keys[at]);
    replies.put_value(entry == nullptr ? Value() : entry->value);
  }
  return std::nullopt;
}

Store::Refused Store::list_keys(ConnectionId connection, ReplyQueue& replies) {
  const std::size_t copied = sizeof(std::int64_t) * (1 + keys()) + listings_.name_bytes();
  if (!replies.fits(copied)) return Refusal(Reason::kTooManyReplies, replies.bytes_with(copied));
  listings_.begin(connection, replies);
  return std::nullopt;
}

// Names that are present now are not checked again; the reply is sent once each missing name has
// been written.
Store::Refused Store::wait(ConnectionId connection, const Request& request, ReplyQueue& replies) {
  if (all_ready(request.keys)) {
    replies.put_u8(0);
    return std::nullopt;
  }
  Entries entries;
  if (auto refused = find_or_create_all(request.keys, entries)) return refused;
  std::erase_if(entries.all, [](const Entry* entry) { return entry->ready(); });
  auto refused = add_waits(connection, entries.all);
  if (refused) erase_unused(entries.created);
  return refused;
}

// A client whose wait timed out reads one byte, or two if the wake-up came first; the last is
// always 1.
void Store::cancel_wait(ConnectionId connection, ReplyQueue& replies) {
  (void)on_disconnect(connection);
  replies.put_u8(1);
}

// One-shot per key: the count remains as the key's value, so later callers pass.
Store::Refused Store::barrier(ConnectionId connection, const Request& request,
                              ReplyQueue& replies) {
  Entry* entry = nullptr;
  if (auto refused = find_or_create(request.key, entry)) return refused;
  const auto old = entry->value ? parse_number(entry->value.view()) : std::int64_t{0};
  if (!old) return Refusal(Reason::kNotANumber);
  const auto count = checked_add(*old, 1);
  if (!count) return Refusal(Reason::kSumOverflows);
  const bool complete = *count >= request.number;
  if (!complete) {
    if (auto refused = add_waits(connection, {entry})) {
      erase_if_unused(*entry);
      return refused;
    }
  }
  if (auto refused = put_number(*entry, *count)) {
    if (!complete) (void)on_disconnect(connection);  // this erases an unused entry, too
    if (complete) erase_if_unused(*entry);
    return refused;
  }
  if (complete) replies.put_u8(0);
  wake_waiters(*entry, request.op, complete ? KeyChange::kComplete : KeyChange::kPresent);
  return std::nullopt;
}

Store::Refused Store::queue_push(Request& request) {
  Entry* entry = nullptr;
  if (auto refused = find_or_create(request.key, entry)) return refused;
  if (!memory_.try_take(kElementBytes)) {
    erase_if_unused(*entry);
    return full(kElementBytes);
  }
  if (!request.value.own(memory_)) {
    memory_.give_back(kElementBytes);
    erase_if_unused(*entry);
    return full(request.value.view().size());
  }
  if (entry->queue == nullptr) entry->queue = std::make_unique<std::deque<Value>>();
  entry->queue->push_back(request.value.take());
  wake_waiters(*entry, request.op, KeyChange::kPresent);
  return std::nullopt;
}

void Store::queue_pop(const Request& request, ReplyQueue& replies) {
  Entry* entry = find(request.key);
  if (entry == nullptr || entry->queue == nullptr) {
    replies.put_i64(0);
    return;
  }
  replies.put_i64(static_cast<std::int64_t>(entry->queue->size()));
  replies.put_value(entry->queue->front());
  entry->queue->pop_front();
  memory_.give_back(kElementBytes);
  if (entry->queue->empty()) entry->queue.reset();
  erase_if_unused(*entry);
}

void Store::queue_len(const Request& request, ReplyQueue& replies) const {
  const Entry* entry = find(request.key);
  const bool any = entry != nullptr && entry->queue != nullptr;
  replies.put_i64(any ? static_cast<std::int64_t>(entry->queue->size()) : 0);
}

}  // namespace ddprun::store
