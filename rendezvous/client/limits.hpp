// Limits of the agent's connection to its coordinator.
#pragma once

#include <chrono>
#include <cstddef>

#include "rendezvous/client/membership/limits.hpp"
#include "rendezvous/protocol/limits.hpp"

namespace ddprun::client {

// Bytes the coordinator has not taken yet; more, and the link is closed with that evidence.
inline constexpr std::size_t kUnsentBytesMax = 4 * protocol::kFrameBytesMax;
// Read from the link before other events have their turn.
inline constexpr std::size_t kReceiveAtOnce = 256 * 1024;
// Name lookup and connection of one attempt; then LinkDown with what was tried.
inline constexpr Duration kAttemptMax = kConnectMax * 9 / 10;
// A peer that takes nothing for this long is not waited for at the end.
inline constexpr Duration kStallMax = std::chrono::seconds(1);

// A hello without an answer for this long: another connection asks what kind of server that is.
inline constexpr Duration kDoubtAfter = std::chrono::milliseconds(250);
// For each of two questions.
inline constexpr Duration kAskMax = std::chrono::milliseconds(300);

static_assert(kDoubtAfter + 2 * kAskMax < std::chrono::seconds(1), "refused within a second");
static_assert(kUnsentBytesMax > 2 * protocol::kFrameBytesMax, "the largest report fits");
static_assert(kAttemptMax < kConnectMax, "the attempt names its evidence before it is given up");

}  // namespace ddprun::client
