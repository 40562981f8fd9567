// Counter-based random numbers: each value is a function of (key, index), so there is no state to
// save, send or restore. Pure. Not std::shuffle or torch.randperm, whose results differ between
// versions.
#pragma once

#include <cstdint>

namespace ddprun::trainer {

/// The finalizer of splitmix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number
/// generators").
[[nodiscard]] constexpr std::uint64_t mix(std::uint64_t value) {
  value += 0x9E3779B97F4A7C15U;
  value = (value ^ (value >> 30U)) * 0xBF58476D1CE4E5B9U;
  value = (value ^ (value >> 27U)) * 0x94D049BB133111EBU;
  return value ^ (value >> 31U);
}

/// The random key of one pass over the training set. Includes the epoch, so that it cannot be
/// omitted.
struct EpochKey {
  std::uint64_t seed = 0;
  std::uint64_t epoch = 0;

  /// Mixed twice: with `constant * epoch + i` the streams of adjacent epochs would overlap.
  [[nodiscard]] constexpr std::uint64_t stream() const { return mix(mix(seed) ^ epoch); }
};

/// splitmix64 as a stream: value i is mix(key + i * golden ratio).
class CounterStream {
 public:
  explicit constexpr CounterStream(std::uint64_t key) : key_(key) {}

  constexpr std::uint64_t next() { return mix(key_ + (index_++) * 0x9E3779B97F4A7C15U); }

  /// Uniform in [0, bound), without bias (Lemire: "Fast random integer generation in an interval").
  /// bound >= 1.
  constexpr std::uint32_t below(std::uint32_t bound) {
    std::uint64_t product = (next() >> 32U) * bound;
    if (static_cast<std::uint32_t>(product) < bound) {
      const std::uint32_t unfair = (0U - bound) % bound;
      while (static_cast<std::uint32_t>(product) < unfair) product = (next() >> 32U) * bound;
    }
    return static_cast<std::uint32_t>(product >> 32U);
  }

 private:
  std::uint64_t key_;
  std::uint64_t index_ = 0;
};

}  // namespace ddprun::trainer
