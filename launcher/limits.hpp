// Bounds of what a command line may ask for. Those of a run over several nodes are the link's
// (rendezvous/protocol/limits.hpp), so that nobody is refused only after they have met; a test
// holds the two together.
#pragma once

#include <chrono>
#include <cstddef>

namespace ddprun {

// MAX of --nnodes, entries of --hosts; more: a usage error.
inline constexpr int kNodesMax = 65536;
// Bytes of a run id or role that other nodes are told; more: a usage error.
inline constexpr std::size_t kNameBytesMax = 255;
// Values of --rdzv-conf; outside: a usage error.
inline constexpr std::chrono::milliseconds kConfTimeMin{1};
inline constexpr std::chrono::milliseconds kConfTimeMax = std::chrono::hours(24 * 365);
inline constexpr int kKeepAliveAttemptsMax = 1000;
// --max-restarts of a run over several nodes; more: a usage error.
inline constexpr int kRestartsOverNodesMax = 1'000'000;
// Hosts of a list that one sentence names; the others are counted.
inline constexpr std::size_t kHostsNamedMax = 8;

}  // namespace ddprun
