#include "rendezvous/store/memory.hpp"

#include <sys/mman.h>

#include <cstdlib>
#include <cstring>
#include <new>

namespace ddprun::store {

namespace {

constexpr std::size_t kPage = 4096;

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

}  // namespace ddprun::store
