// Bounds of the agent <-> coordinator link and of one run. What is over a bound is refused with a
// sentence; nothing is allocated before its size was checked.
#pragma once

#include <chrono>
#include <cstddef>

#include "base/limits.hpp"

namespace ddprun::protocol {

// One frame's body; a longer one closes the connection before a byte of it is stored.
inline constexpr std::size_t kFrameBytesMax = 1024 * 1024;
// Run ids, host names, roles, addresses, agent ids; longer: the message is malformed.
inline constexpr std::size_t kNameBytesMax = 255;
// A sentence or a line of worker output; the encoder cuts longer ones, the decoder refuses them.
inline constexpr std::size_t kTextBytesMax = 4096;
// Worker ends told one by one in a report; the rest is only counted.
inline constexpr std::size_t kExitsPerReportMax = 8;
// Nesting of a message's JSON.
inline constexpr std::size_t kDepthMax = 8;
// Agents of one run; one more is refused.
inline constexpr int kAgentsPerRunMax = 65536;
inline constexpr int kRestartsMax = 1'000'000;
// Rounds of one run; 2^30 rounds of a millisecond each last twelve days.
inline constexpr int kRoundMax = 1 << 30;
inline constexpr std::chrono::milliseconds kDurationMax = std::chrono::hours(24 * 365);

// A control character takes six bytes in JSON; each exit has two texts and five names, the first
// its last lines too.
static_assert(6 * kTextBytesMax * (kReportLinesMax + 2 * kExitsPerReportMax) +
                      6 * kNameBytesMax * 5 * kExitsPerReportMax + 4096 <
                  kFrameBytesMax,
              "the largest report fits in a frame, even if every byte is escaped");
static_assert(kAgentsPerRunMax <= 2147483647 / kWorkersPerNodeMax, "a world size fits an int");

}  // namespace ddprun::protocol
