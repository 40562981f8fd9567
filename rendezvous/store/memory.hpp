// Memory: the budget of one store, and a cache of a few large blocks that were freed recently.
// Faulting in the pages of a new mapping costs more than receiving data into it, so a client that
// repeatedly sets large values reuses the previous block. drop_spares() returns the cached blocks
// to the system. Thread rule: one thread.
#pragma once

#include <array>
#include <cstddef>
#include <utility>

#include "base/budget.hpp"

namespace ddprun::store {

class Memory : public Budget {
 public:
  using Budget::Budget;
  ~Memory();

  /// Returns a block of at least `bytes` and sets `bytes` to its actual size. Blocks of
  /// kMmapThreshold bytes or more are separate mappings. Throws std::bad_alloc. Does not charge the
  /// budget; the caller does.
  [[nodiscard]] void* allocate(std::size_t& bytes);
  /// A cached block of a suitable size, or null.
  [[nodiscard]] void* take_spare(std::size_t& bytes);
  /// `bytes`: the block's actual size.
  void deallocate(void* block, std::size_t bytes);
  /// Enlarges a block and preserves its first `kept` bytes. Mappings grow without being copied.
  [[nodiscard]] void* grow(void* block, std::size_t from, std::size_t& to, std::size_t kept);

  void drop_spares();
  [[nodiscard]] std::size_t spare_bytes() const { return spare_bytes_; }
  /// Incremented whenever a block enters or leaves the cache; an unchanged value means an idle
  /// cache.
  [[nodiscard]] std::size_t spare_moves() const { return spare_moves_; }

 private:
  using Spare = std::pair<void*, std::size_t>;
  std::array<Spare, 8> spares_{};
  std::size_t spare_bytes_ = 0;
  std::size_t spare_moves_ = 0;
};

/// Blocks of this size or larger are mappings, so that freeing one does not fragment the heap.
inline constexpr std::size_t kMmapThreshold = 64 * 1024;
/// Maximum total size of all cached blocks.
inline constexpr std::size_t kSpareBytesMax = 17 * 1024 * 1024;

}  // namespace ddprun::store
