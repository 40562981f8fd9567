// What the store of a round sees of its clients. Plain data.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

namespace ddprun {

// RankClaims: two processes that take part in a round as its rank 0 at the same time, as the store
// of the round sees it.

/// By the process ids that they tell, each in its own pid namespace.
struct RankClaims {
  std::uint32_t first = 0;
  std::uint32_t second = 0;  // another than `first`
  friend bool operator==(const RankClaims&, const RankClaims&) = default;
};

// StoreWait: a client of a round's store that waits for keys. The store tells which connection it
// is; which rank that belongs to, its node knows (StoreLink of base/rank_facts.hpp).

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
