#include "rendezvous/store/value.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>

namespace ddprun::store {

namespace {

// From here on a block is a mapping: freeing it cannot leave a hole in the heap.
constexpr std::size_t kMappedFrom = 64 * 1024;
constexpr std::size_t kPage = 4096;
// The first room for a value whose length was announced and whose bytes are still to come.
constexpr std::size_t kFirstRoom = 64 * 1024;

std::size_t footprint(std::size_t bytes) {
  return bytes < kMappedFrom ? bytes : (bytes + kPage - 1) / kPage * kPage;
}

void* obtain(std::size_t bytes) {
  if (bytes < kMappedFrom) return std::malloc(bytes);
  void* place = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return place == MAP_FAILED ? nullptr : place;
}

void give_up(void* place, std::size_t bytes) {
  if (bytes < kMappedFrom) {
    std::free(place);
  } else {
    ::munmap(place, bytes);
  }
}

// `kept` bytes survive; a mapping that stays a mapping is moved by the kernel without copying.
void* resize(void* place, std::size_t from, std::size_t to, std::size_t kept) {
  if (from >= kMappedFrom && to >= kMappedFrom) {
    void* moved = ::mremap(place, from, to, MREMAP_MAYMOVE);
    return moved == MAP_FAILED ? nullptr : moved;
  }
  void* fresh = obtain(to);
  if (fresh == nullptr) return nullptr;
  std::memcpy(fresh, place, kept);
  give_up(place, from);
  return fresh;
}

}  // namespace

Value::Block* Value::allocate(std::size_t capacity, Budget& budget) {
  const std::size_t bytes = footprint(sizeof(Block) + capacity);
  if (!budget.try_take(bytes)) return nullptr;
  void* place = obtain(bytes);
  if (place == nullptr) {
    budget.give_back(bytes);
    throw std::bad_alloc();
  }
  return new (place) Block{&budget, 0, bytes - sizeof(Block), 1};
}

Value Value::with_room(std::size_t capacity, Budget& budget) {
  Value made;
  made.block_ = allocate(capacity, budget);
  return made;
}

Value Value::copy_of(std::string_view bytes, Budget& budget) {
  Value made = with_room(bytes.size(), budget);
  if (made && !bytes.empty()) std::memcpy(made.data(), bytes.data(), bytes.size());
  if (made) made.block_->size = bytes.size();
  return made;
}

bool Value::assign(std::string_view bytes, Budget& budget) {
  const bool fits = block_ != nullptr && !shared() && bytes.size() <= block_->capacity &&
                    block_->capacity <= 2 * bytes.size() + 64;
  if (!fits) {
    Value fresh = copy_of(bytes, budget);
    if (!fresh) return false;
    std::swap(block_, fresh.block_);
    return true;
  }
  if (!bytes.empty()) std::memmove(data(), bytes.data(), bytes.size());
  block_->size = bytes.size();
  return true;
}

bool Value::append(std::string_view bytes, Budget& budget) {
  const std::size_t old_size = size();
  const std::size_t new_size = old_size + bytes.size();
  if (block_ == nullptr || shared()) {
    Value fresh = with_room(new_size, budget);
    if (!fresh) return false;
    if (old_size > 0) std::memcpy(fresh.data(), data(), old_size);
    fresh.block_->size = old_size;
    std::swap(block_, fresh.block_);
  } else if (new_size > block_->capacity) {
    const std::size_t roomy = std::max(new_size, old_size + old_size / 2);
    const std::size_t more = footprint(sizeof(Block) + roomy) - (sizeof(Block) + block_->capacity);
    if (!budget.try_take(more)) return false;
    grow(roomy);
  }
  if (!bytes.empty()) std::memcpy(data() + old_size, bytes.data(), bytes.size());
  block_->size = new_size;
  return true;
}

std::span<char> Value::writable(std::size_t size_final, Budget& budget) {
  DDPRUN_ASSERT(size() < size_final);
  if (block_ == nullptr) block_ = allocate(std::min(size_final, kFirstRoom), budget);
  if (block_ == nullptr) return {};
  if (block_->size == block_->capacity) {
    const std::size_t capacity = std::min(size_final, 2 * block_->capacity);
    const std::size_t more =
        footprint(sizeof(Block) + capacity) - (sizeof(Block) + block_->capacity);
    if (!budget.try_take(more)) return {};
    grow(capacity);
  }
  const std::size_t room = std::min(block_->capacity, size_final) - block_->size;
  return {data() + block_->size, room};
}

// The caller has taken the difference from the budget.
void Value::grow(std::size_t capacity) {
  const std::size_t from = sizeof(Block) + block_->capacity;
  const std::size_t to = footprint(sizeof(Block) + capacity);
  void* place = resize(block_, from, to, sizeof(Block) + block_->size);
  if (place == nullptr) {
    block_->budget->give_back(to - from);
    throw std::bad_alloc();
  }
  block_ = static_cast<Block*>(place);
  block_->capacity = to - sizeof(Block);
}

void Value::release() {
  if (--block_->holders > 0) return;
  const std::size_t bytes = sizeof(Block) + block_->capacity;
  block_->budget->give_back(bytes);
  give_up(block_, bytes);
}

}  // namespace ddprun::store
