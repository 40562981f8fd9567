// What the fuzzer and the replay of its corpus do with an input: several connections, each cut into
// pieces, against one store, and then the checks that must hold whatever came.
#pragma once

#include <cstdint>
#include <span>

namespace ddprun::store {

/// The first byte of each piece says which of four connections it belongs to (two of them have
/// their dialect decided by their bytes), whether that one disconnects afterwards, and how long the
/// piece is. Aborts on a violated invariant.
void replay(std::span<const std::uint8_t> input);

}  // namespace ddprun::store
