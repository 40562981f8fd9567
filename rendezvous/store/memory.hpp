// Memory: the budget of one store, and a few large blocks it has just let go. Filling a fresh
// mapping costs more than receiving into it, page by page, so a client that sets large values again
// and again gets the last one's block; drop_spares() gives them back to the system. One thread.
#pragma once

#include <array>
#include <cstddef>
#include <utility>

#include "rendezvous/store/budget.hpp"

namespace ddprun::store {

class Memory : public Budget {
 public:
  using Budget::Budget;
  ~Memory();

  /// A block of at least `bytes`; its real size is written to `bytes`. Blocks of kMappedFrom and
  /// more are mappings of their own. Throws std::bad_alloc. The budget is the caller's business.
  [[nodiscard]] void* obtain(std::size_t& bytes);
  /// A spare block that suits, or null.
  [[nodiscard]] void* obtain_spare(std::size_t& bytes);
  /// `bytes`: the block's real size.
  void give_up(void* place, std::size_t bytes);
  /// Makes a block larger; its first `kept` bytes survive. Mappings grow without being copied.
  [[nodiscard]] void* grow(void* place, std::size_t from, std::size_t& to, std::size_t kept);

  void drop_spares();
  [[nodiscard]] std::size_t spare_bytes() const { return spare_bytes_; }
  /// Grows whenever a spare is kept or used: a pool whose number stands still is idle.
  [[nodiscard]] std::size_t spare_moves() const { return spare_moves_; }

 private:
  using Spare = std::pair<void*, std::size_t>;
  std::array<Spare, 8> spares_{};
  std::size_t spare_bytes_ = 0;
  std::size_t spare_moves_ = 0;
};

/// From here on a block is a mapping: freeing it cannot leave a hole in the heap.
inline constexpr std::size_t kMappedFrom = 64 * 1024;
/// All spares together.
inline constexpr std::size_t kSpareBytesMax = 17 * 1024 * 1024;

}  // namespace ddprun::store
