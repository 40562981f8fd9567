// RankClaims: two processes that take part in a round as its rank 0 at the same time, as the store
// of the round sees it. Plain data.
#pragma once

#include <cstdint>

namespace ddprun {

/// By the process ids that they tell, each in its own pid namespace.
struct RankClaims {
  std::uint32_t first = 0;
  std::uint32_t second = 0;  // another than `first`
  friend bool operator==(const RankClaims&, const RankClaims&) = default;
};

}  // namespace ddprun
