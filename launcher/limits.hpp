// Limits of command-line values that only the launcher checks. Values sent to other nodes are
// bounded by base/limits.hpp, as on the link, so that they are refused before the rendezvous.
#pragma once

#include <cstddef>
#include <string_view>

#include "base/limits.hpp"

namespace ddprun {

/// torchrun has this --rdzv-id where none is given, and so has any job.
inline constexpr std::string_view kDefaultRunId = "none";
inline constexpr int kKeepAliveAttemptsMax = 1000;
// Number of hosts that one sentence names; the others are counted.
inline constexpr std::size_t kHostsNamedMax = 8;
// Size of the file of --config; a larger one is a usage error.
inline constexpr std::size_t kConfigBytesMax = 1024 * 1024;

// Parts of a key there; what reads it goes one call deeper for each.
inline constexpr std::size_t kConfigKeyPartsMax = 1000;

}  // namespace ddprun
