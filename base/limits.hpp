// Every bound of ddprun in one place, with the relations between them checked at compile time.
// Overflow always has a defined answer, named beside the constant.
#pragma once

#include <cstddef>

namespace ddprun {

// Worker output kept in memory per stream, for the report; older bytes are forgotten.
inline constexpr std::size_t kTailBytesMax = 64 * 1024;
// Lines of a worker's stderr that the report quotes.
inline constexpr int kReportLinesMax = 20;
// Workers on one node; more is a usage error.
inline constexpr int kWorkersPerNodeMax = 4096;

static_assert(kTailBytesMax >= 4096, "twenty lines of a traceback must fit");

}  // namespace ddprun
