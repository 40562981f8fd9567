// StoreWait: a client of a round's store that waits for keys. The store tells which connection it
// is; which rank that belongs to, its node knows (StoreLink of base/rank_facts.hpp). Plain data.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>

namespace ddprun {

struct StoreWait {
  std::string address{};  // of the client, numeric
  int port = 0;
  std::string key{};  // the first that is missing, cut
  int keys = 1;       // that are missing
  std::chrono::milliseconds waited{0};
  friend bool operator==(const StoreWait&, const StoreWait&) = default;
};
// Waits of one store that are told; those for a key that few clients wait for come first.
inline constexpr std::size_t kStoreWaitsMax = 64;
// Bytes of a key; of a longer one the beginning and the end.
inline constexpr std::size_t kStoreKeyMax = 64;

}  // namespace ddprun
