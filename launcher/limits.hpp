// Limits of command-line values. Those for several nodes equal the limits of the link
// (rendezvous/protocol/limits.hpp), so that values are refused before the rendezvous; a test
// compares both.
#pragma once

#include <chrono>
#include <cstddef>

namespace ddprun {

// MAX of --nnodes, entries of --hosts; more is a usage error.
inline constexpr int kNodesMax = 65536;
// Bytes of a run id or role that is sent to other nodes; more is a usage error.
inline constexpr std::size_t kNameBytesMax = 255;
// Range of --rdzv-conf values; outside is a usage error.
inline constexpr std::chrono::milliseconds kConfTimeMin{1};
inline constexpr std::chrono::milliseconds kConfTimeMax = std::chrono::hours(24 * 365);
inline constexpr int kKeepAliveAttemptsMax = 1000;
// --max-restarts for several nodes; more is a usage error.
inline constexpr int kRestartsOverNodesMax = 1'000'000;
// Number of hosts that one sentence names; the others are counted.
inline constexpr std::size_t kHostsNamedMax = 8;

}  // namespace ddprun
