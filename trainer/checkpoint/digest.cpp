#include "trainer/checkpoint/digest.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

namespace ddprun::trainer {
namespace {

constexpr std::uint64_t kPrime1 = 0x9E3779B185EBCA87U;
constexpr std::uint64_t kPrime2 = 0xC2B2AE3D27D4EB4FU;
constexpr std::uint64_t kPrime3 = 0x165667B19E3779F9U;
constexpr std::uint64_t kPrime4 = 0x85EBCA77C2B2AE63U;
constexpr std::uint64_t kPrime5 = 0x27D4EB2F165667C5U;
constexpr std::size_t kStripe = 32;

static_assert(std::endian::native == std::endian::little, "lanes are read in host byte order");

template <class Value>
Value load(const std::byte* bytes) {
  Value value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

std::uint64_t round_of(std::uint64_t lane, std::uint64_t input) {
  return std::rotl(lane + input * kPrime2, 31) * kPrime1;
}

std::uint64_t merge(std::uint64_t hash, std::uint64_t lane) {
  return (hash ^ round_of(0, lane)) * kPrime1 + kPrime4;
}

void eat_stripe(std::array<std::uint64_t, 4>& lanes, const std::byte* stripe) {
  for (std::size_t i = 0; i < 4; ++i)
    lanes[i] = round_of(lanes[i], load<std::uint64_t>(stripe + 8 * i));
}

std::uint64_t eat_tail(std::uint64_t hash, std::span<const std::byte> tail) {
  for (; tail.size() >= 8; tail = tail.subspan(8)) {
    hash = std::rotl(hash ^ round_of(0, load<std::uint64_t>(tail.data())), 27) * kPrime1 + kPrime4;
  }
  if (tail.size() >= 4) {
    hash = std::rotl(hash ^ (load<std::uint32_t>(tail.data()) * kPrime1), 23) * kPrime2 + kPrime3;
    tail = tail.subspan(4);
  }
  for (const std::byte byte : tail) {
    hash = std::rotl(hash ^ (std::to_integer<std::uint64_t>(byte) * kPrime5), 11) * kPrime1;
  }
  return hash;
}

}  // namespace

Digest::Digest(std::uint64_t seed)
    : lanes_{seed + kPrime1 + kPrime2, seed + kPrime2, seed, seed - kPrime1}, seed_(seed) {}

Digest& Digest::update(std::span<const std::byte> bytes) {
  total_ += bytes.size();
  if (pending_size_ > 0) {
    const std::size_t taken = std::min(kStripe - pending_size_, bytes.size());
    std::copy_n(bytes.begin(), taken,
                pending_.begin() + static_cast<std::ptrdiff_t>(pending_size_));
    pending_size_ += taken;
    bytes = bytes.subspan(taken);
    if (pending_size_ < kStripe) return *this;
    eat_stripe(lanes_, pending_.data());
  }
  for (; bytes.size() >= kStripe; bytes = bytes.subspan(kStripe)) eat_stripe(lanes_, bytes.data());
  std::copy(bytes.begin(), bytes.end(), pending_.begin());
  pending_size_ = bytes.size();
  return *this;
}

Digest& Digest::update(std::string_view text) {
  return update(std::as_bytes(std::span(text)));
}

std::uint64_t Digest::value() const {
  std::uint64_t hash = seed_ + kPrime5;
  if (total_ >= kStripe) {
    hash = std::rotl(lanes_[0], 1) + std::rotl(lanes_[1], 7) + std::rotl(lanes_[2], 12) +
           std::rotl(lanes_[3], 18);
    for (const std::uint64_t lane : lanes_) hash = merge(hash, lane);
  }
  hash = eat_tail(hash + total_, std::span(pending_).first(pending_size_));
  hash = (hash ^ (hash >> 33U)) * kPrime2;
  hash = (hash ^ (hash >> 29U)) * kPrime3;
  return hash ^ (hash >> 32U);
}

std::string hex_text(std::uint64_t value) {
  std::string text(16, '0');
  for (auto digit = text.rbegin(); digit != text.rend(); ++digit, value >>= 4U) {
    *digit = "0123456789abcdef"[value & 0xFU];
  }
  return text;
}

}  // namespace ddprun::trainer
