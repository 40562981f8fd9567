// KeyedHash: SipHash-1-3 (Aumasson and Bernstein, "SipHash: a fast short-input PRF", 2012) under a
// key of this process, for hash tables whose keys come from peers: who does not know the key cannot
// choose keys that collide. Thread rule: any.
#pragma once

#include <cstddef>
#include <string_view>

namespace ddprun {

struct KeyedHash {
  using is_transparent = void;
  [[nodiscard]] std::size_t operator()(std::string_view text) const;
};

}  // namespace ddprun
