#include "trainer/checkpoint/digest.hpp"

namespace ddprun::trainer {

Digest::Digest(std::uint64_t seed) {
  XXH64_reset(&state_, seed);
}

Digest& Digest::update(std::span<const std::byte> bytes) {
  XXH64_update(&state_, bytes.data(), bytes.size());
  return *this;
}

Digest& Digest::update(std::string_view text) {
  return update(std::as_bytes(std::span(text)));
}

std::uint64_t Digest::value() const {
  return XXH64_digest(&state_);
}

std::string hex_text(std::uint64_t value) {
  std::string text(16, '0');
  for (auto digit = text.rbegin(); digit != text.rend(); ++digit, value >>= 4U) {
    *digit = "0123456789abcdef"[value & 0xFU];
  }
  return text;
}

}  // namespace ddprun::trainer
