// Value: a reference-counted byte string, and Memory, from which the values of one store come. The
// map, the queues and unsent replies share one block, so a value fanned out to a thousand clients
// exists once. Large blocks are separate mappings: they grow without being copied and are returned
// to the system when the last reference is dropped.
//
// Thread rule: one thread (the count is not atomic). A Value must not outlive its Memory.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>

#include "base/quota.hpp"

namespace ddprun::store {

/// Blocks of this size or larger are mappings, so that freeing one does not fragment the heap.
inline constexpr std::size_t kMmapThreshold = 64 * 1024;
/// Maximum total size of all cached blocks.
inline constexpr std::size_t kSpareBytesMax = 17 * 1024 * 1024;

/// The budget of one store, and a cache of a few large blocks that were freed recently. Faulting in
/// the pages of a new mapping costs more than receiving data into it, so a client that repeatedly
/// sets large values reuses the previous block.
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

  /// Returns the cached blocks to the system.
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

/// A null Value means "no value"; an empty Value has zero bytes.
class Value {
 public:
  Value() = default;
  /// A copy of `bytes`. Null if the budget does not allow it.
  [[nodiscard]] static Value copy_of(std::string_view bytes, Memory& memory);
  /// An empty value with the given capacity. Null if the budget does not allow it.
  [[nodiscard]] static Value with_capacity(std::size_t capacity, Memory& memory);

  Value(const Value& other) : block_(other.block_) { add_reference(); }
  Value(Value&& other) noexcept : block_(std::exchange(other.block_, nullptr)) {}
  Value& operator=(Value other) noexcept {
    std::swap(block_, other.block_);
    return *this;
  }
  ~Value() {
    if (block_ != nullptr) release();
  }

  explicit operator bool() const { return block_ != nullptr; }
  [[nodiscard]] std::string_view view() const {
    return block_ == nullptr ? std::string_view() : std::string_view(data(), block_->size);
  }
  [[nodiscard]] std::size_t size() const { return block_ == nullptr ? 0 : block_->size; }

  /// Replaces the bytes, in place if they fit and the block is not shared. Never null. Returns
  /// false, without any change, if the budget does not allow it.
  [[nodiscard]] bool assign(std::string_view bytes, Memory& memory);
  /// Appends bytes; capacity grows geometrically, so that many small appends take linear time.
  /// Returns as assign().
  [[nodiscard]] bool append(std::string_view bytes, Memory& memory);

  /// For an unshared value that is being received: ensures at least one writable byte after the end
  /// and returns the whole writable range. The block never grows beyond `size_final`. Empty if the
  /// budget does not allow it.
  [[nodiscard]] std::span<char> writable(std::size_t size_final, Memory& memory);
  /// Commits the first `count` bytes of writable().
  void written(std::size_t count) {
    DDPRUN_ASSERT(block_ != nullptr && count <= block_->capacity - block_->size);
    block_->size += count;
  }

 private:
  struct Block {
    Memory* memory;
    std::size_t size;
    std::size_t capacity;
    std::size_t references;
  };

  static Block* allocate(std::size_t capacity, Memory& memory);
  static Block* adopt(void* place, std::size_t bytes, Memory& memory);
  [[nodiscard]] bool grow(std::size_t capacity);
  void release();
  void add_reference() {
    if (block_ != nullptr) ++block_->references;
  }
  [[nodiscard]] bool shared() const { return block_->references > 1; }
  [[nodiscard]] char* data() const { return reinterpret_cast<char*>(block_ + 1); }

  Block* block_ = nullptr;
};

}  // namespace ddprun::store
