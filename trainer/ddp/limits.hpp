// Limits of the collectives.
#pragma once

#include <chrono>

namespace ddprun::trainer {

/// Timeout of the connection setup and of every collective: the last resort against a peer that
/// hangs. A dead peer is detected immediately.
inline constexpr std::chrono::milliseconds kCollectiveTimeout{120'000};

}  // namespace ddprun::trainer
