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

// A spare much larger than needed would tie up memory nobody asked for.
bool suits(std::size_t spare, std::size_t wanted) {
  return spare >= wanted && spare <= wanted + wanted / 4 + kPage;
}

}  // namespace

Memory::~Memory() {
  drop_spares();
}

void* Memory::obtain(std::size_t& bytes) {
  if (bytes < kMappedFrom) {
    void* place = std::malloc(bytes);
    if (place == nullptr) throw std::bad_alloc();
    return place;
  }
  if (void* spare = obtain_spare(bytes)) return spare;
  bytes = whole_pages(bytes);
  void* place = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (place == MAP_FAILED) throw std::bad_alloc();
  return place;
}

void* Memory::obtain_spare(std::size_t& bytes) {
  if (spare_bytes_ == 0) return nullptr;
  for (auto& [place, size] : spares_) {
    if (place == nullptr || !suits(size, bytes)) continue;
    bytes = size;
    spare_bytes_ -= size;
    ++spare_moves_;
    return std::exchange(place, nullptr);
  }
  return nullptr;
}

void Memory::give_up(void* place, std::size_t bytes) {
  if (bytes < kMappedFrom) {
    std::free(place);
    return;
  }
  if (spare_bytes_ + bytes <= kSpareBytesMax) {
    for (Spare& spare : spares_) {
      if (spare.first != nullptr) continue;
      spare = {place, bytes};
      spare_bytes_ += bytes;
      ++spare_moves_;
      return;
    }
  }
  ::munmap(place, bytes);
}

void* Memory::grow(void* place, std::size_t from, std::size_t& to, std::size_t kept) {
  if (from >= kMappedFrom) {
    to = whole_pages(to);
    void* moved = ::mremap(place, from, to, MREMAP_MAYMOVE);
    if (moved == MAP_FAILED) throw std::bad_alloc();
    return moved;
  }
  void* fresh = obtain(to);
  std::memcpy(fresh, place, kept);
  give_up(place, from);
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
