// Limits of the link to workers; what happens beyond a limit stands beside it.
#pragma once

#include <chrono>
#include <cstddef>

#include "base/clock.hpp"

namespace ddprun::worker_link {

// Connections of a worker itself, and as many of processes below it; another one is closed.
inline constexpr std::size_t kConnectionsPerRank = 16;
// Connections beyond those of all ranks, to close the ones that are too many.
inline constexpr std::size_t kConnectionsSpare = 16;
// Connections that wait in the kernel's queue; a worker beyond that tries again after a second.
inline constexpr int kBacklog = 256;
// How long accepting pauses when the process has no descriptor left.
inline constexpr std::chrono::seconds kAcceptPause{1};
// From accepting a connection until its page is here; then it is closed.
inline constexpr std::chrono::seconds kHelloMax{5};
// Packets of one connection that are read at once, and the interval of more. Others wait in the
// kernel's buffer; when that is full, the library drops what it was to send.
inline constexpr int kPacketBurst = 64;
inline constexpr Duration kPacketInterval = std::chrono::milliseconds(20);
// Between attempts to send a round to a worker that does not read; the next round replaces it.
inline constexpr Duration kResendInterval = std::chrono::milliseconds(20);
// What the kernel holds for a worker that survives: two rounds.
inline constexpr int kSendBufferBytes = 256 * 1024;
// Workers of a node whose exit is noticed as it begins; of others it is noticed at its end.
inline constexpr std::size_t kExitsWatchedMax = 127;  // futex_waitv takes one more
// After so many values that mean nothing a worker's word is not looked at any longer.
inline constexpr int kWordChangesMax = 100;
// New connections whose owner is looked up at once, and the interval of more; others are closed.
inline constexpr int kLookupBurst = 1024;
inline constexpr Duration kLookupInterval = std::chrono::milliseconds(10);
// The longest time-out of a section; a longer one counts as this.
inline constexpr Duration kSectionLimitMax = std::chrono::hours(24 * 24);

}  // namespace ddprun::worker_link
