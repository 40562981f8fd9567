// XXH64: a fast 64-bit digest that detects corruption, not tampering. Pure. Input may be split
// anywhere.
#pragma once

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace ddprun::trainer {

class Digest {
 public:
  explicit Digest(std::uint64_t seed = 0);
  Digest& update(std::span<const std::byte> bytes);
  Digest& update(std::string_view text);
  /// The digest of all input so far; update() may be called again.
  [[nodiscard]] std::uint64_t value() const;

 private:
  XXH64_state_t state_;
};

/// 16 hexadecimal digits.
[[nodiscard]] std::string hex_text(std::uint64_t value);

}  // namespace ddprun::trainer
