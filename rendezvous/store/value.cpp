#include "rendezvous/store/value.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>

namespace ddprun::store {

namespace {

constexpr std::size_t kPage = 4096;
// Initial capacity of a value whose length is announced before its bytes arrive.
constexpr std::size_t kFirstCapacity = 64 * 1024;

std::size_t whole_pages(std::size_t bytes) {
  return (bytes + kPage - 1) / kPage * kPage;
}

// A block much larger than requested would waste memory.
bool suits(std::size_t spare, std::size_t wanted) {
  return spare >= wanted && spare <= wanted + wanted / 4 + kPage;
}

}  // namespace

Memory::~Memory() {
  drop_spares();
}

void* Memory::allocate(std::size_t& bytes) {
  if (bytes < kMmapThreshold) {
    void* block = std::malloc(bytes);
    if (block == nullptr) throw std::bad_alloc();
    return block;
  }
  if (void* spare = take_spare(bytes)) return spare;
  bytes = whole_pages(bytes);
  void* block = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (block == MAP_FAILED) throw std::bad_alloc();
  return block;
}

void* Memory::take_spare(std::size_t& bytes) {
  if (spare_bytes_ == 0) return nullptr;
  for (auto& [block, size] : spares_) {
    if (block == nullptr || !suits(size, bytes)) continue;
    bytes = size;
    spare_bytes_ -= size;
    ++spare_moves_;
    return std::exchange(block, nullptr);
  }
  return nullptr;
}

void Memory::deallocate(void* block, std::size_t bytes) {
  if (bytes < kMmapThreshold) {
    std::free(block);
    return;
  }
  if (spare_bytes_ + bytes <= kSpareBytesMax) {
    for (Spare& spare : spares_) {
      if (spare.first != nullptr) continue;
      spare = {block, bytes};
      spare_bytes_ += bytes;
      ++spare_moves_;
      return;
    }
  }
  ::munmap(block, bytes);
}

void* Memory::grow(void* block, std::size_t from, std::size_t& to, std::size_t kept) {
  if (from >= kMmapThreshold) {
    to = whole_pages(to);
    void* moved = ::mremap(block, from, to, MREMAP_MAYMOVE);
    if (moved == MAP_FAILED) throw std::bad_alloc();
    return moved;
  }
  void* fresh = allocate(to);
  std::memcpy(fresh, block, kept);
  deallocate(block, from);
  return fresh;
}

void Memory::drop_spares() {
  for (Spare& spare : spares_) {
    if (spare.first != nullptr) ::munmap(spare.first, spare.second);
    spare = {};
  }
  spare_bytes_ = 0;
}

// Null if the budget does not allow it.
Value::Block* Value::allocate(std::size_t capacity, Memory& memory) {
  std::size_t bytes = sizeof(Block) + capacity;
  if (!memory.allows(bytes)) return nullptr;
  return adopt(memory.allocate(bytes), bytes, memory);
}

Value::Block* Value::adopt(void* block, std::size_t bytes, Memory& memory) {
  if (memory.try_take(bytes)) {
    return new (block) Block{&memory, 0, bytes - sizeof(Block), 1};
  }
  memory.deallocate(block, bytes);
  return nullptr;
}

Value Value::with_capacity(std::size_t capacity, Memory& memory) {
  Value made;
  made.block_ = allocate(capacity, memory);
  return made;
}

Value Value::copy_of(std::string_view bytes, Memory& memory) {
  Value made = with_capacity(bytes.size(), memory);
  if (made && !bytes.empty()) std::memcpy(made.data(), bytes.data(), bytes.size());
  if (made) made.block_->size = bytes.size();
  return made;
}

bool Value::assign(std::string_view bytes, Memory& memory) {
  const bool fits = block_ != nullptr && !shared() && bytes.size() <= block_->capacity &&
                    block_->capacity <= 2 * bytes.size() + 64;
  if (!fits) {
    Value fresh = copy_of(bytes, memory);
    if (!fresh) return false;
    std::swap(block_, fresh.block_);
    return true;
  }
  if (!bytes.empty()) std::memmove(data(), bytes.data(), bytes.size());
  block_->size = bytes.size();
  return true;
}

bool Value::append(std::string_view bytes, Memory& memory) {
  const std::size_t old_size = size();
  const std::size_t new_size = old_size + bytes.size();
  if (block_ == nullptr || shared()) {
    Value fresh = with_capacity(new_size, memory);
    if (!fresh) return false;
    if (old_size > 0) std::memcpy(fresh.data(), data(), old_size);
    fresh.block_->size = old_size;
    std::swap(block_, fresh.block_);
  } else if (new_size > block_->capacity) {
    if (!grow(std::max(new_size, old_size + old_size / 2))) return false;
  }
  if (!bytes.empty()) std::memcpy(data() + old_size, bytes.data(), bytes.size());
  block_->size = new_size;
  return true;
}

std::span<char> Value::writable(std::size_t size_final, Memory& memory) {
  DDPRUN_ASSERT(size() < size_final);
  if (block_ == nullptr) {
    std::size_t bytes = sizeof(Block) + size_final;
    void* spare = memory.take_spare(bytes);
    block_ = spare != nullptr ? adopt(spare, bytes, memory)
                              : allocate(std::min(size_final, kFirstCapacity), memory);
  }
  if (block_ == nullptr) return {};
  if (block_->size == block_->capacity && !grow(std::min(size_final, 2 * block_->capacity))) {
    return {};
  }
  const std::size_t room = std::min(block_->capacity, size_final) - block_->size;
  return {data() + block_->size, room};
}

// Returns false if the budget does not allow it.
bool Value::grow(std::size_t capacity) {
  Memory& memory = *block_->memory;
  const std::size_t from = sizeof(Block) + block_->capacity;
  std::size_t to = sizeof(Block) + capacity;
  if (!memory.allows(to - from)) return false;
  block_ = static_cast<Block*>(memory.grow(block_, from, to, sizeof(Block) + block_->size));
  block_->capacity = to - sizeof(Block);
  memory.take(to - from);  // at most one page above the checked amount
  return true;
}

void Value::release() {
  if (--block_->references > 0) return;
  Memory& memory = *block_->memory;
  const std::size_t bytes = sizeof(Block) + block_->capacity;
  memory.give_back(bytes);
  memory.deallocate(block_, bytes);
}

}  // namespace ddprun::store
