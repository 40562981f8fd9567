#include "rendezvous/store/listings.hpp"

namespace ddprun::store {

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
