// Runs one fuzzer input: several connections, each split into pieces, against one store, and checks
// the invariants that hold for any input.
#pragma once

#include <cstdint>
#include <span>

namespace ddprun::store {

/// The first byte of each piece encodes which of four connections it belongs to (the dialect of two
/// of them depends on their first bytes), whether that connection disconnects afterwards, and the
/// length of the piece. Aborts if an invariant is violated.
void replay(std::span<const std::uint8_t> input);

}  // namespace ddprun::store
