// Limits of the collectives.
#pragma once

#include <chrono>

namespace ddprun::trainer {

/// Timeout of the connection setup and of every collective: the last resort against a peer that
/// hangs. A dead peer is detected immediately.
inline constexpr std::chrono::milliseconds kCollectiveTimeout{120'000};

/// Once all ranks have arrived in the store they connect at once. A rank that is lost in between
/// leaves others waiting for its connection, which nothing but a timeout ends.
inline constexpr std::chrono::milliseconds kConnectTimeout{10'000};

/// How long a worker tries to reach the store of a round before it looks whether the round is over.
inline constexpr std::chrono::milliseconds kStoreAttempt{1'000};

}  // namespace ddprun::trainer
