#include "rendezvous/store/store.hpp"

#include <charconv>

namespace ddprun::store {

namespace {

// What a name costs besides its text: its node, the table's slot and the allocator's own.
constexpr std::size_t kEntryBytes = 160;
// What one (connection, name) pair that waits costs.
constexpr std::size_t kWaitBytes = 64;

std::size_t cost_of(std::string_view name) {
  return kEntryBytes + name.size();
}

}  // namespace

Store::Store(const Limits& limits, Memory& memory) : limits_(limits), memory_(memory) {}

Store::~Store() {
  for (const auto& [name, entry] : entries_) {
    memory_.give_back(cost_of(name));
    if (entry.queue != nullptr) memory_.give_back(entry.queue->size() * kElementBytes);
  }
  memory_.give_back(waits_.size() * kWaitBytes);
}

std::optional<Refusal> Store::step(ConnectionId who, Request& request, ReplyQueue& replies) {
  woken_.clear();
  Refused refused;
  // A legacy client whose wait timed out says nothing and goes on; the late answer to the wait
  // would be taken for the next reply. Two waits at once have no defined answer in either dialect.
  const bool waits_too = request.op == Opcode::kWait || request.op == Opcode::kBarrier;
  if ((request.dialect == Dialect::kLegacy || waits_too) && waits_.waiting(who)) {
    refused = Refusal(Reason::kBusyWaiting);
  } else {
    refused = carry_out(who, request, replies);
  }
  if (refused) refused->op = request.op;
  return refused;
}

Store::Refused Store::carry_out(ConnectionId who, Request& request, ReplyQueue& replies) {
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
      return wait(who, request, replies);
    case Opcode::kGetNumKeys:
      replies.put_i64(static_cast<std::int64_t>(keys_));
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
      cancel_wait(who, replies);
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
      return list_keys(replies);
    case Opcode::kBarrier:
      return barrier(who, request, replies);
    case Opcode::kWatchKey:
      replies.put_u8(3);
      break;  // "registered"; no known client listens
    case Opcode::kValidate:
      break;
  }
  return std::nullopt;
}

void Store::gone(ConnectionId who) {
  const std::size_t before = waits_.size();
  std::vector<Waits::Line*> left;
  if (!waits_.drop(who, left)) return;
  memory_.give_back((before - waits_.size()) * kWaitBytes);
  for (Waits::Line* line : left) forget_if_unused(static_cast<Entry&>(*line));
}

Store::Refused Store::join_lines(ConnectionId who, const std::vector<Entry*>& missing) {
  const std::size_t more = missing.size();
  if (more > limits_.waits || waits_.size() > limits_.waits - more) {
    return Refusal(Reason::kTooManyWaits, waits_.size() + more);
  }
  const std::size_t cost = more * kWaitBytes;
  if (!memory_.try_take(cost)) return full(cost);
  const std::size_t before = waits_.size();
  waits_.add(who, {missing.begin(), missing.end()});
  memory_.give_back(cost - (waits_.size() - before) * kWaitBytes);  // repeated names
  return std::nullopt;
}

// The only place where a waiter is woken.
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
  forget_if_unused(entry);
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

Store::Refused Store::obtain(std::string_view name, Entry*& entry) {
  entry = find(name);
  if (entry != nullptr) return std::nullopt;
  if (entries_.size() >= limits_.keys) {
    return Refusal(Reason::kTooManyStoredKeys, entries_.size() + 1);
  }
  if (!memory_.try_take(cost_of(name))) return full(cost_of(name));
  const auto place = entries_.try_emplace(std::string(name)).first;
  entry = &place->second;
  entry->name = &place->first;
  return std::nullopt;
}

Store::Refused Store::obtain_all(const KeyList& keys, Entries& entries) {
  entries.all.reserve(keys.size());
  for (std::size_t at = 0; at < keys.size(); ++at) {
    const std::size_t before = entries_.size();
    Entry* entry = nullptr;
    if (auto refused = obtain(keys[at], entry)) {
      forget_all(entries.made);
      return refused;
    }
    if (entries_.size() > before) entries.made.push_back(entry);
    entries.all.push_back(entry);
  }
  return std::nullopt;
}

void Store::forget_all(const std::vector<Entry*>& made) {
  for (Entry* entry : made) forget_if_unused(*entry);
}

void Store::forget_if_unused(Entry& entry) {
  if (!entry.unused()) return;
  memory_.give_back(cost_of(*entry.name));
  entries_.erase(entries_.find(*entry.name));
}

// Gives a key its value; the entry stays, for the caller to forget, where the budget refuses.
Store::Refused Store::put(Entry& entry, Payload& payload) {
  const bool fresh = !entry.value;
  if (payload.owned()) {
    entry.value = payload.take();
  } else if (!entry.value.assign(payload.view(), memory_)) {
    return full(payload.view().size());
  }
  if (fresh) count_key(entry);
  return std::nullopt;
}

Store::Refused Store::put_number(Entry& entry, std::int64_t number) {
  char text[24];
  const auto end = std::to_chars(text, text + sizeof(text), number);
  Payload payload(std::string_view(text, static_cast<std::size_t>(end.ptr - text)));
  return put(entry, payload);
}

void Store::count_key(const Entry& entry) {
  ++keys_;
  key_bytes_ += entry.name->size();
}

Refusal Store::full(std::size_t more) const {
  return Refusal(Reason::kStoreFull, memory_.used() + more);
}

}  // namespace ddprun::store
