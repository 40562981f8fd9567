// Limits of the collectives.
#pragma once

#include <chrono>

namespace ddprun::trainer {

/// Last resort against a peer that is silent but not gone: the longest wait for the other ranks,
/// from connecting to any one collective. A dead peer is noticed at once, without it.
inline constexpr std::chrono::milliseconds kCollectiveTimeout{120'000};

}  // namespace ddprun::trainer
