#include "rendezvous/store/replies.hpp"

#include <algorithm>
#include <array>
#include <bit>

namespace ddprun::store {

namespace {

// Below this size a copy is cheaper than another iovec.
constexpr std::size_t kShareThreshold = 4096;
// Sent bytes are removed from the front of text_ once they reach this size.
constexpr std::size_t kCompactThreshold = 64 * 1024;
// Capacity that an idle connection keeps for its next small reply.
constexpr std::size_t kKeptCapacity = 256;

template <class Number>
std::array<char, sizeof(Number)> little_endian(Number number) {
  std::array<char, sizeof(Number)> bytes{};
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    bytes[at] = static_cast<char>(number >> (8 * at) & 0xff);
  }
  return bytes;
}

iovec part_of(std::string_view bytes) {
  return {const_cast<char*>(bytes.data()), bytes.size()};  // sendmsg does not write
}

}  // namespace

ReplyQueue::~ReplyQueue() {
  copied_->give_back(text_.size());
}

void ReplyQueue::put(std::string_view bytes) {
  copied_->take(bytes.size());
  text_.append(bytes);
  unsent_ += bytes.size();
}

void ReplyQueue::put_u8(std::uint8_t number) {
  const char byte = static_cast<char>(number);
  put({&byte, 1});
}

void ReplyQueue::put_u32(std::uint32_t number) {
  const auto bytes = little_endian(number);
  put({bytes.data(), bytes.size()});
}

void ReplyQueue::put_i64(std::int64_t number) {
  const auto bytes = little_endian(static_cast<std::uint64_t>(number));
  put({bytes.data(), bytes.size()});
}

void ReplyQueue::put_bytes(std::string_view bytes) {
  put_i64(static_cast<std::int64_t>(bytes.size()));
  put(bytes);
}

void ReplyQueue::put_value(const Value& value) {
  if (value.size() < kShareThreshold) {
    put_bytes(value.view());
    return;
  }
  put_i64(static_cast<std::int64_t>(value.size()));
  shared_.push_back({text_.size(), value});
  unsent_ += value.size();
}

std::size_t ReplyQueue::copied_size(const Value& value) {
  return sizeof(std::int64_t) + (value.size() < kShareThreshold ? value.size() : sizeof(Shared));
}

std::size_t ReplyQueue::gather(std::span<iovec> parts) const {
  std::size_t filled = 0;
  std::size_t text_at = text_sent_;
  std::size_t offset = value_offset_;
  for (std::size_t next = shared_sent_; filled < parts.size(); ++next, offset = 0) {
    const bool last = next == shared_.size();
    const std::size_t text_end = last ? text_.size() : shared_[next].after;
    if (text_end > text_at) {
      parts[filled++] = part_of(std::string_view(text_).substr(text_at, text_end - text_at));
      text_at = text_end;
    }
    if (last || filled == parts.size()) break;
    parts[filled++] = part_of(shared_[next].value.view().substr(offset));
  }
  return filled;
}

void ReplyQueue::sent(std::size_t bytes) {
  DDPRUN_ASSERT(bytes <= unsent_);
  unsent_ -= bytes;
  if (unsent_ == 0) {
    clear();
    return;
  }
  while (bytes > 0) {
    const bool last = shared_sent_ == shared_.size();
    const std::size_t text_end = last ? text_.size() : shared_[shared_sent_].after;
    const std::size_t from_text = std::min(bytes, text_end - text_sent_);
    text_sent_ += from_text;
    bytes -= from_text;
    if (bytes == 0) break;
    Shared& front = shared_[shared_sent_];
    const std::size_t from_value = std::min(bytes, front.value.size() - value_offset_);
    value_offset_ += from_value;
    bytes -= from_value;
    if (value_offset_ < front.value.size()) break;
    front.value = Value();
    ++shared_sent_;
    value_offset_ = 0;
  }
  drop_sent();
}

std::size_t ReplyQueue::memory() const {
  return text_.capacity() + shared_.capacity() * sizeof(Shared);
}

// Swapping with an empty container frees the capacity; assigning one would keep it.
void ReplyQueue::clear() {
  copied_->give_back(text_.size());
  text_.clear();
  if (text_.capacity() > kKeptCapacity) std::string().swap(text_);
  std::vector<Shared>().swap(shared_);
  text_sent_ = 0;
  shared_sent_ = 0;
  value_offset_ = 0;
}

void ReplyQueue::drop_sent() {
  if (text_sent_ < kCompactThreshold || text_sent_ < text_.size() / 2) return;
  std::string(text_, text_sent_).swap(text_);
  copied_->give_back(text_sent_);
  shared_.erase(shared_.begin(), shared_.begin() + static_cast<std::ptrdiff_t>(shared_sent_));
  for (Shared& later : shared_) later.after -= text_sent_;
  shared_sent_ = 0;
  text_sent_ = 0;
}

void Listings::add(Listed& key) {
  key.number = ++added_;
  key.before = last_;
  key.after = nullptr;
  (last_ == nullptr ? first_ : last_->after) = &key;
  last_ = &key;
  ++keys_;
  name_bytes_ += key.name->size();
}

void Listings::remove(Listed& key) {
  for (auto& [connection, listing] : listings_) {
    if (!listing.covers(key)) continue;
    listing.replies->put_bytes(*key.name);
    if (listing.next == &key) listing.next = key.after;
  }
  (key.before == nullptr ? first_ : key.before->after) = key.after;
  (key.after == nullptr ? last_ : key.after->before) = key.before;
  --keys_;
  name_bytes_ -= key.name->size();
}

void Listings::begin(ConnectionId connection, ReplyQueue& replies) {
  replies.put_i64(static_cast<std::int64_t>(keys_));
  if (keys_ > 0) listings_.insert_or_assign(connection, Listing{&replies, first_, added_});
}

bool Listings::more(ConnectionId connection, std::size_t keys) {
  const auto found = listings_.find(connection);
  if (found == listings_.end()) return false;
  Listing& listing = found->second;
  for (; keys > 0 && listing.next != nullptr && listing.covers(*listing.next); --keys) {
    listing.replies->put_bytes(*listing.next->name);
    listing.next = listing.next->after;
  }
  if (listing.next != nullptr && listing.covers(*listing.next)) return true;
  listings_.erase(found);
  return false;
}

}  // namespace ddprun::store
