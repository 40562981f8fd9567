// What a report says of clients that wait.
#include <algorithm>
#include <map>

#include "rendezvous/store/server_impl.hpp"

namespace ddprun::store {

namespace {

/// Of a long key the beginning, and more of the end: that names the rank.
std::string shown(std::string_view key) {
  if (key.size() <= kStoreKeyMax) return std::string(key);
  constexpr std::size_t kBegin = 20;
  constexpr std::string_view kGap = "...";
  constexpr std::size_t kEnd = kStoreKeyMax - kBegin - kGap.size();
  return std::string(key.substr(0, kBegin)) + std::string(kGap) +
         std::string(key.substr(key.size() - kEnd));
}

}  // namespace

std::vector<StoreWait> Server::Impl::waits() const {
  using std::chrono::milliseconds;
  const TimePoint now = Clock::now();
  std::vector<StoreWait> all;
  std::map<std::string, std::size_t> waiting;  // for each key
  sessions_.for_each([&](const Session& session) {
    const Store::Pending pending = store_.pending(session.store_id());
    if (pending.missing == 0) return;
    StoreWait& wait = all.emplace_back();
    wait.address = net::address_text(session.from);
    wait.port = ntohs(session.from.sin6_port);
    wait.key = shown(pending.name);
    wait.keys = static_cast<int>(pending.missing);
    wait.waited = std::chrono::duration_cast<milliseconds>(now - session.waits_since);
    ++waiting[wait.key];
  });
  std::stable_sort(all.begin(), all.end(), [&](const StoreWait& one, const StoreWait& other) {
    return waiting[one.key] < waiting[other.key];
  });
  if (all.size() > kStoreWaitsMax) all.resize(kStoreWaitsMax);
  return all;
}

}  // namespace ddprun::store
