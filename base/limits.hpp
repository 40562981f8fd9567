// Bounds that several rooms share; those of one room are in its limits.hpp or beside what they
// bound. What happens beyond a bound is stated next to it.
#pragma once

#include <chrono>
#include <cstddef>

#include "base/clock.hpp"

namespace ddprun {

// Of a worker's error.json beyond this, the first bytes are read up to it, and the last
// kErrorFileEndBytes.
inline constexpr std::size_t kErrorFileBytesMax = 1024 * 1024;
inline constexpr std::size_t kErrorFileEndBytes = 64 * 1024;
// How long Ctrl-Z waits for a console that takes nothing.
inline constexpr Duration kPauseNoteMax = std::chrono::seconds(1);
// Candidates tried for the name of a directory or file that must be new; then an error.
inline constexpr int kUniqueNamesMax = 100;

// Bytes of worker output kept in memory per stream for the report; older bytes are discarded.
inline constexpr std::size_t kTailBytesMax = 64 * 1024;
// Lines of a worker's stderr that the report quotes.
inline constexpr std::size_t kReportLinesMax = 20;
// Maximum number of workers per node; more is a usage error.
inline constexpr int kWorkersPerNodeMax = 4096;
// Maximum number of nodes of a run: MAX of --nnodes, entries of --hosts; more is a usage error.
inline constexpr int kNodesMax = 65536;
// Bytes of a run id, role, host name, address or agent id; a longer one of the user's is a usage
// error, a longer one in a message makes it malformed.
inline constexpr std::size_t kNameBytesMax = 255;
// Maximum of --max-restarts for several nodes; more is a usage error.
inline constexpr int kRestartsMax = 1'000'000;
// Maximum of a time in --rdzv-conf or in a message; more is a usage error.
inline constexpr std::chrono::milliseconds kDurationMax = std::chrono::hours(24 * 365);
// Bytes of a command that are sent to be quoted where two nodes differ; a longer one is cut.
inline constexpr std::size_t kCommandBytesMax = 512;

// After SIGKILL a worker that is still alive is in the kernel (state D): it is named and given up.
inline constexpr Duration kWaitAfterKill = std::chrono::seconds(10);
// Added to a shutdown timeout: by then every node that can be reached has ended its workers or
// given them up, and the coordinator knows.
inline constexpr Duration kStopMargin = kWaitAfterKill + std::chrono::seconds(5);

static_assert(kTailBytesMax >= 4096, "twenty lines of a traceback must fit");
static_assert(kNodesMax <= 2147483647 / kWorkersPerNodeMax, "a world size fits an int");

}  // namespace ddprun
