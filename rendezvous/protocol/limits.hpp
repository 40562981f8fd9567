// Bounds of the agent <-> coordinator link, in addition to base/limits.hpp. What is over a bound is
// refused with a sentence; nothing is allocated before its size was checked.
#pragma once

#include <cstddef>

#include "base/limits.hpp"

namespace ddprun::protocol {

// One frame's body; a longer one closes the connection before a byte of it is stored.
inline constexpr std::size_t kFrameBytesMax = 1024 * 1024;
// A sentence or a line of worker output; the encoder cuts longer ones, the decoder refuses them.
inline constexpr std::size_t kTextBytesMax = 4096;
// Worker ends told one by one in a report; the rest is only counted.
inline constexpr std::size_t kExitsPerReportMax = 8;
// Nesting of a message's JSON.
inline constexpr std::size_t kDepthMax = 8;
// Agents of one run; one more is refused.
inline constexpr int kAgentsPerRunMax = kNodesMax;
// Rounds of one run; 2^30 rounds of a millisecond each last twelve days.
inline constexpr int kRoundMax = 1 << 30;

// A control character takes six bytes in JSON; each exit has two texts and five names, the first
// its last lines too.
static_assert(6 * kTextBytesMax * (kReportLinesMax + 2 * kExitsPerReportMax) +
                      6 * kNameBytesMax * 5 * kExitsPerReportMax + 4096 <
                  kFrameBytesMax,
              "the largest report fits in a frame, even if every byte is escaped");

}  // namespace ddprun::protocol
