// XXH64, implemented from its published specification: a fast 64-bit digest that detects
// corruption, not tampering. Pure. Input may be split anywhere.
#pragma once

#include <array>
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
  std::array<std::uint64_t, 4> lanes_;
  std::array<std::byte, 32> pending_{};
  std::size_t pending_size_ = 0;
  std::uint64_t total_ = 0;
  std::uint64_t seed_;
};

/// 16 hexadecimal digits.
[[nodiscard]] std::string hex_text(std::uint64_t value);

}  // namespace ddprun::trainer
