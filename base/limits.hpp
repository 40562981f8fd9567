// Bounds that several rooms share, with the relations between them checked at compile time. What
// happens beyond a bound is stated next to it.
#pragma once

#include <cstddef>

namespace ddprun {

// Bytes of worker output kept in memory per stream for the report; older bytes are discarded.
inline constexpr std::size_t kTailBytesMax = 64 * 1024;
// Lines of a worker's stderr that the report quotes.
inline constexpr std::size_t kReportLinesMax = 20;
// Maximum number of workers per node; more is a usage error.
inline constexpr int kWorkersPerNodeMax = 4096;
// Bytes of a command that the sentence about two different ones can draw on; longer: cut.
inline constexpr std::size_t kCommandBytesMax = 512;

static_assert(kTailBytesMax >= 4096, "twenty lines of a traceback must fit");

}  // namespace ddprun
