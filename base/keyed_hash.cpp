#include "base/keyed_hash.hpp"

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>

#include "base/random_uuid.hpp"

namespace ddprun {

namespace {

using Key = std::array<std::uint64_t, 2>;

Key random_key() {
  std::array<unsigned char, sizeof(Key)> bytes{};
  fill_random(bytes.data(), bytes.size());
  return std::bit_cast<Key>(bytes);
}

struct State {
  std::uint64_t v0;
  std::uint64_t v1;
  std::uint64_t v2;
  std::uint64_t v3;

  void round() {
    v0 += v1;
    v2 += v3;
    v1 = std::rotl(v1, 13) ^ v0;
    v3 = std::rotl(v3, 16) ^ v2;
    v0 = std::rotl(v0, 32);
    v2 += v1;
    v0 += v3;
    v1 = std::rotl(v1, 17) ^ v2;
    v3 = std::rotl(v3, 21) ^ v0;
    v2 = std::rotl(v2, 32);
  }
  void take(std::uint64_t word) {
    v3 ^= word;
    round();
    v0 ^= word;
  }
};

}  // namespace

std::size_t KeyedHash::operator()(std::string_view text) const {
  static const Key kKey = random_key();
  State state{kKey[0] ^ 0x736f6d6570736575U, kKey[1] ^ 0x646f72616e646f6dU,
              kKey[0] ^ 0x6c7967656e657261U, kKey[1] ^ 0x7465646279746573U};
  std::uint64_t last = std::uint64_t{text.size()} << 56U;
  for (; text.size() >= sizeof(std::uint64_t); text.remove_prefix(sizeof(std::uint64_t))) {
    std::uint64_t word = 0;
    std::memcpy(&word, text.data(), sizeof word);
    state.take(word);
  }
  std::uint64_t rest = 0;
  std::memcpy(&rest, text.data(), text.size());
  state.take(last | rest);
  state.v2 ^= 0xffU;
  for (int i = 0; i < 3; ++i) state.round();
  return state.v0 ^ state.v1 ^ state.v2 ^ state.v3;
}

}  // namespace ddprun
