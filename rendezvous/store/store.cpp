#include "rendezvous/store/store.hpp"

#include <charconv>

namespace ddprun::store {

namespace {

// Overhead of a name besides its text: hash node, bucket and allocator.
constexpr std::size_t kEntryBytes = 184;
// Cost of one pending (connection, name) pair.
constexpr std::size_t kWaitBytes = 64;

std::size_t cost_of(std::string_view name) {
  return kEntryBytes + name.size();
}

// Of a value that is read as a number; more than its digits and a sign is white space.
constexpr std::size_t kNumberBytesMax = 64;

/// Numbers are decimal text, read as C's strtoll does: white space and a sign may precede them, and
/// the first non-digit ends them. nullopt without digits in kNumberBytesMax, or if it does not fit
/// in 64 bits.
std::optional<std::int64_t> parse_number(std::string_view text) {
  text = text.substr(0, kNumberBytesMax);
  const std::size_t begin = text.find_first_not_of(" \t\n\v\f\r");
  if (begin == std::string_view::npos) return std::nullopt;
  text.remove_prefix(begin);
  if (text.front() == '+') {
    text.remove_prefix(1);
    if (!text.empty() && text.front() == '-') return std::nullopt;
  }
  std::int64_t number = 0;
  const auto end = std::from_chars(text.data(), text.data() + text.size(), number);
  if (end.ec != std::errc()) return std::nullopt;
  return number;
}

/// nullopt if the sum overflows.
std::optional<std::int64_t> checked_add(std::int64_t left, std::int64_t right) {
  std::int64_t sum = 0;
  if (__builtin_add_overflow(left, right, &sum)) return std::nullopt;
  return sum;
}

}  // namespace

Store::Store(const Limits& limits, Memory& memory) : limits_(limits), memory_(memory) {}

Store::~Store() {
  for (const auto& [connection, request] : unfinished_) memory_.give_back(request.cost);
  forget();
  memory_.give_back(waits_.size() * kWaitBytes);
}

void Store::forget() {
  while (forget_some(entries_.size() + forgotten_.size())) {
  }
}

bool Store::forget_some(std::size_t names) {
  if (waits_.has_dropped()) {  // their links are in lists of the entries
    (void)drop_some(names + 1);
    return true;
  }
  if (forgotten_.empty()) {
    forgotten_.swap(entries_);
    listings_ = Listings();
  }
  for (; names > 0 && !forgotten_.empty(); --names) {
    const auto& [name, entry] = *forgotten_.begin();
    memory_.give_back(cost_of(name));
    if (entry.queue != nullptr) memory_.give_back(entry.queue->size() * kElementBytes);
    forgotten_.erase(forgotten_.begin());
  }
  if (!forgotten_.empty()) return true;
  EntryMap().swap(forgotten_);  // the buckets of a large map are memory, too
  return false;
}

std::optional<Refusal> Store::step(ConnectionId connection, Request& request, ReplyQueue& replies) {
  woken_.clear();
  Refused refused;
  // A legacy client whose wait timed out sends no cancellation, so the late answer to the wait
  // would be mistaken for the next reply. Two simultaneous waits have no defined reply in either
  // dialect.
  const bool also_waits = request.op == Opcode::kWait || request.op == Opcode::kBarrier;
  const bool in_parts = request.op == Opcode::kCheck || request.op == Opcode::kWait ||
                        request.op == Opcode::kMultiGet;
  if ((request.dialect == Dialect::kLegacy || also_waits) && waits_.waiting(connection)) {
    refused = Refusal(Reason::kBusyWaiting);
  } else if (in_parts && request.keys.size() > limits_.names_per_turn) {
    refused = begin_parts(connection, request);
  } else {
    refused = carry_out(connection, request, replies);
  }
  if (refused) refused->op = request.op;
  return refused;
}

Store::Refused Store::carry_out(ConnectionId connection, Request& request, ReplyQueue& replies) {
  switch (request.op) {
    case Opcode::kSet:
      return set(request);
    case Opcode::kCompareSet:
      return compare_set(request, replies);
    case Opcode::kGet:
      get(request, replies);
      break;
    case Opcode::kAdd:
      return add(request, replies);
    case Opcode::kCheck:
      replies.put_u8(all_ready(request.keys) ? 0 : 1);
      break;
    case Opcode::kWait:
      return wait(connection, request, replies);
    case Opcode::kGetNumKeys:
      replies.put_i64(static_cast<std::int64_t>(keys()));
      break;
    case Opcode::kDeleteKey:
      delete_key(request, replies);
      break;
    case Opcode::kAppend:
      return append(request);
    case Opcode::kMultiGet:
      return multi_get(request, replies);
    case Opcode::kMultiSet:
      return multi_set(request);
    case Opcode::kCancelWait:
      cancel_wait(connection, replies);
      break;
    case Opcode::kPing:
      replies.put_u32(static_cast<std::uint32_t>(request.number));
      break;
    case Opcode::kQueuePush:
      return queue_push(request);
    case Opcode::kQueuePop:
      queue_pop(request, replies);
      break;
    case Opcode::kQueueLen:
      queue_len(request, replies);
      break;
    case Opcode::kListKeys:
      return list_keys(connection, replies);
    case Opcode::kBarrier:
      return barrier(connection, request, replies);
    case Opcode::kWatchKey:
      replies.put_u8(3);
      break;  // "registered"; no known client expects events
    case Opcode::kValidate:
      break;
  }
  return std::nullopt;
}

Store::Refused Store::begin_parts(ConnectionId connection, Request& request) {
  const std::size_t cost = request.keys.memory();
  if (!memory_.try_take(cost)) return full(cost);
  Unfinished& parts = unfinished_[connection];
  parts = {request.op, std::move(request.keys), 0, cost};
  request.keys.free();
  if (parts.op == Opcode::kWait) waits_.begin(connection, parts.keys.size());
  return std::nullopt;
}

std::optional<Refusal> Store::go_on(ConnectionId connection, std::size_t names,
                                    ReplyQueue& replies) {
  const auto found = unfinished_.find(connection);
  if (found == unfinished_.end()) return std::nullopt;
  Unfinished& parts = found->second;
  for (; names > 0 && parts.at < parts.keys.size(); --names, ++parts.at) {
    if (auto refused = visit(connection, parts, replies)) {
      refused->op = parts.op;
      return refused;
    }
  }
  if (parts.at >= parts.keys.size()) finish_parts(connection, replies);
  return std::nullopt;
}

Store::Refused Store::visit(ConnectionId connection, Unfinished& request, ReplyQueue& replies) {
  const std::string_view name = request.keys[request.at];
  if (request.op == Opcode::kWait) {
    Entry* entry = nullptr;
    if (auto refused = find_or_create(name, entry)) return refused;
    if (entry->ready()) return std::nullopt;
    const bool fits = waits_.size() < limits_.waits && memory_.try_take(kWaitBytes);
    if (!fits) {
      erase_if_unused(*entry);
      return waits_.size() < limits_.waits ? full(kWaitBytes)
                                           : Refusal(Reason::kTooManyWaits, waits_.size() + 1);
    }
    const std::size_t before = waits_.size();
    waits_.add_to(connection, *entry);
    if (waits_.size() == before) memory_.give_back(kWaitBytes);  // a repeated name
    return std::nullopt;
  }
  const Entry* entry = find(name);
  if (request.op == Opcode::kCheck) {
    if (entry == nullptr || !entry->ready()) request.at = request.keys.size();  // the answer
    return std::nullopt;
  }
  const Value value = entry == nullptr ? Value() : entry->value;
  const std::size_t copied = ReplyQueue::copied_size(value);
  if (!replies.fits(copied)) return Refusal(Reason::kTooManyReplies, replies.bytes_with(copied));
  replies.put_value(value);
  return std::nullopt;
}

void Store::finish_parts(ConnectionId connection, ReplyQueue& replies) {
  const Unfinished& parts = unfinished_.at(connection);
  if (parts.op == Opcode::kCheck) replies.put_u8(parts.at == parts.keys.size() ? 0 : 1);
  if (parts.op == Opcode::kWait && !waits_.end(connection)) replies.put_u8(0);
  forget_parts(connection);
}

void Store::forget_parts(ConnectionId connection) {
  const auto found = unfinished_.find(connection);
  if (found == unfinished_.end()) return;
  memory_.give_back(found->second.cost);
  unfinished_.erase(found);
}

void Store::on_disconnect(ConnectionId connection) {
  listings_.drop(connection);
  forget_parts(connection);
  if (waits_.drop(connection)) (void)drop_some(limits_.names_per_turn);
}

bool Store::drop_some(std::size_t names) {
  std::vector<Waits::WaitList*> affected;
  const std::size_t before = waits_.size();
  const bool more = waits_.drop_some(names, affected);
  memory_.give_back((before - waits_.size()) * kWaitBytes);
  for (Waits::WaitList* list : affected) erase_if_unused(static_cast<Entry&>(*list));
  return more;
}

Store::Pending Store::pending(ConnectionId connection) const {
  const Waits::Pending found = waits_.pending(connection);
  if (found.first == nullptr) return {};
  return {*static_cast<const Entry*>(found.first)->name, found.missing};
}

Store::Refused Store::add_waits(ConnectionId connection, const std::vector<Entry*>& missing) {
  const std::size_t more = missing.size();
  if (more > limits_.waits || waits_.size() > limits_.waits - more) {
    return Refusal(Reason::kTooManyWaits, waits_.size() + more);
  }
  const std::size_t cost = more * kWaitBytes;
  if (!memory_.try_take(cost)) return full(cost);
  const std::size_t before = waits_.size();
  waits_.add(connection, {missing.begin(), missing.end()});
  memory_.give_back(cost - (waits_.size() - before) * kWaitBytes);  // repeated names
  return std::nullopt;
}

// The only function that wakes waiters.
void Store::wake_waiters(Entry& entry, Opcode op, KeyChange change) {
  if (!entry.empty()) {
    const std::size_t before = waits_.size();
    switch (waiters_to_wake(op, change)) {
      case WaitersToWake::kAll:
        waits_.wake_all(entry, woken_);
        break;
      case WaitersToWake::kOne:
        waits_.wake_one(entry, woken_);
        break;
      case WaitersToWake::kNone:
        break;
    }
    memory_.give_back((before - waits_.size()) * kWaitBytes);
  }
  erase_if_unused(entry);
}

Store::Entry* Store::find(std::string_view name) {
  const auto found = entries_.find(name);
  return found == entries_.end() ? nullptr : &found->second;
}

const Store::Entry* Store::find(std::string_view name) const {
  const auto found = entries_.find(name);
  return found == entries_.end() ? nullptr : &found->second;
}

bool Store::all_ready(const KeyList& keys) const {
  for (std::size_t at = 0; at < keys.size(); ++at) {
    const Entry* entry = find(keys[at]);
    if (entry == nullptr || !entry->ready()) return false;
  }
  return true;
}

Store::Refused Store::find_or_create(std::string_view name, Entry*& entry) {
  entry = find(name);
  if (entry != nullptr) return std::nullopt;
  if (entries_.size() >= limits_.keys) {
    return Refusal(Reason::kTooManyStoredKeys, entries_.size() + 1);
  }
  if (!memory_.try_take(cost_of(name))) return full(cost_of(name));
  const auto inserted = entries_.try_emplace(std::string(name)).first;
  entry = &inserted->second;
  entry->name = &inserted->first;
  return std::nullopt;
}

Store::Refused Store::find_or_create_all(const KeyList& keys, Entries& entries) {
  entries.all.reserve(keys.size());
  for (std::size_t at = 0; at < keys.size(); ++at) {
    const std::size_t before = entries_.size();
    Entry* entry = nullptr;
    if (auto refused = find_or_create(keys[at], entry)) {
      erase_unused(entries.created);
      return refused;
    }
    if (entries_.size() > before) entries.created.push_back(entry);
    entries.all.push_back(entry);
  }
  return std::nullopt;
}

void Store::erase_unused(const std::vector<Entry*>& created) {
  for (Entry* entry : created) erase_if_unused(*entry);
}

void Store::erase_if_unused(Entry& entry) {
  if (!entry.unused()) return;
  memory_.give_back(cost_of(*entry.name));
  entries_.erase(entries_.find(*entry.name));
}

// Sets the value of a key. If the budget does not allow it, the entry remains and the caller erases
// it.
Store::Refused Store::put(Entry& entry, Payload& payload) {
  const bool fresh = !entry.value;
  if (payload.owned()) {
    entry.value = payload.take();
  } else if (!entry.value.assign(payload.view(), memory_)) {
    return full(payload.view().size());
  }
  if (fresh) listings_.add(entry);
  return std::nullopt;
}

Store::Refused Store::put_number(Entry& entry, std::int64_t number) {
  char text[24];
  const auto end = std::to_chars(text, text + sizeof(text), number);
  Payload payload(std::string_view(text, static_cast<std::size_t>(end.ptr - text)));
  return put(entry, payload);
}

Refusal Store::full(std::size_t more) const {
  return Refusal(Reason::kStoreFull, memory_.used() + more);
}

// The commands, one function each. waiters_to_wake() says which waiters they wake.

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
