// Limits of the agent's connection to its coordinator.
#pragma once

#include <chrono>
#include <cstddef>

#include "rendezvous/client/membership/limits.hpp"
#include "rendezvous/protocol/limits.hpp"

namespace ddprun::client {

// Bytes that the coordinator has not read; above this the link is closed with that evidence.
inline constexpr std::size_t kUnsentBytesMax = 4 * protocol::kFrameBytesMax;
// Read from the link before other events are handled.
inline constexpr std::size_t kReceiveAtOnce = 256 * 1024;
// Name lookup and connection of one attempt; then LinkDown with what was tried.
inline constexpr Duration kAttemptMax = kConnectMax * 9 / 10;
// At the end, a peer that reads nothing for this long is no longer waited for.
inline constexpr Duration kStallMax = std::chrono::seconds(1);
// At the end, the time for all that is queued, however steadily the peer reads.
inline constexpr Duration kFlushMax = std::chrono::seconds(5);

// After this long without an answer to the hello, another connection asks what kind of server it
// is.
inline constexpr Duration kDoubtAfter = std::chrono::milliseconds(250);
// For each of its two questions.
inline constexpr Duration kAskMax = std::chrono::milliseconds(300);

static_assert(kDoubtAfter + 2 * kAskMax < std::chrono::seconds(1), "refused within a second");
static_assert(kUnsentBytesMax > 2 * protocol::kFrameBytesMax, "the largest report fits");
static_assert(kAttemptMax < kConnectMax, "the attempt names its evidence before it is given up");

}  // namespace ddprun::client
