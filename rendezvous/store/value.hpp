// Value: shared, counted bytes. The map, the queues and the replies on their way out hold one and
// the same block, so a value fanned out to a thousand clients exists once. Large blocks are
// mappings of their own: they grow without being copied and go back to the system when the last
// holder lets go.
//
// Thread rule: one thread (the count is not atomic). A Value must not outlive its Memory. A null
// Value means "no value"; an empty one is a value of zero bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>

#include "rendezvous/store/memory.hpp"

namespace ddprun::store {

class Value {
 public:
  Value() = default;
  /// Null when the budget does not allow it.
  [[nodiscard]] static Value copy_of(std::string_view bytes, Memory& memory);
  /// Empty, with room for `capacity` bytes. Null when the budget does not allow it.
  [[nodiscard]] static Value with_room(std::size_t capacity, Memory& memory);

  Value(const Value& other) : block_(other.block_) { hold(); }
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

  /// Replaces the bytes, in place where nobody else holds them and they fit. Never null.
  /// False when the budget refuses; nothing has changed then.
  [[nodiscard]] bool assign(std::string_view bytes, Memory& memory);
  /// Adds bytes at the end, with room to spare so that many small ones cost linear time. As
  /// assign().
  [[nodiscard]] bool append(std::string_view bytes, Memory& memory);

  /// For a value that is being received, not shared yet: makes sure of at least one writable byte
  /// behind the end and returns all there are; the block never grows beyond `size_final`. Empty:
  /// budget refuses.
  [[nodiscard]] std::span<char> writable(std::size_t size_final, Memory& memory);
  /// The first `count` of them have been written.
  void written(std::size_t count) {
    DDPRUN_ASSERT(block_ != nullptr && count <= block_->capacity - block_->size);
    block_->size += count;
  }

 private:
  struct Block {
    Memory* memory;
    std::size_t size;
    std::size_t capacity;
    std::size_t holders;
  };

  static Block* allocate(std::size_t capacity, Memory& memory);
  static Block* adopt(void* place, std::size_t bytes, Memory& memory);
  [[nodiscard]] bool grow(std::size_t capacity);
  void release();
  void hold() {
    if (block_ != nullptr) ++block_->holders;
  }
  [[nodiscard]] bool shared() const { return block_->holders > 1; }
  [[nodiscard]] char* data() const { return reinterpret_cast<char*>(block_ + 1); }

  Block* block_ = nullptr;
};

}  // namespace ddprun::store
