// What each fuzz target defines: one function that takes any bytes. With clang libFuzzer calls it,
// otherwise replay.cpp, with the files of the corpus. A target aborts if an invariant is violated.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/assert.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace ddprun::fuzz {

[[nodiscard]] inline std::string_view text_of(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

/// Takes the next piece off the front of `rest`, as a peer might send it. The lengths follow from
/// the bytes alone, so an input means the same in every run.
[[nodiscard]] inline std::string_view take_piece(std::string_view& rest) {
  const std::size_t wanted = 1 + static_cast<unsigned char>(rest.front()) % 67;
  const std::string_view piece = rest.substr(0, wanted);
  rest.remove_prefix(piece.size());
  return piece;
}

}  // namespace ddprun::fuzz
