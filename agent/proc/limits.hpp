// The limits of agent/proc; what happens beyond a limit stands beside it. The relations between
// them are checked at compile time.
#pragma once

#include <limits.h>

#include <chrono>
#include <cstddef>
#include <cstdint>

#include "base/limits.hpp"

namespace ddprun {

// CPUs are numbered below this; higher numbers in /sys are ignored.
inline constexpr int kCpusMax = 1 << 20;
// Bytes taken from a worker's pipe in one go; the rest waits in the pipe, so that every stream gets
// its turn.
inline constexpr std::size_t kPumpChunkBytes = 64 * 1024;
// The beginning of a line that is passed on waits so long for its end, if that is on its way, and
// up to so many bytes.
inline constexpr std::chrono::milliseconds kHeldMax{500};
inline constexpr std::size_t kHeldBytesMax = 64 * 1024;
// One line of a tee'd stream in memory. What is longer is cut on the console (never in the file),
// with a note that says how much is missing.
inline constexpr std::size_t kLineBytesMax = 256 * 1024;
// Output that waits for the launcher's own stdout or stderr. Beyond it the streams wait, and if the
// console takes nothing for kConsoleStallMax, whole lines are dropped and counted. While workers
// are stopped, who may have a last word to write, it is kConsoleStallAtStop.
inline constexpr std::size_t kConsoleQueueBytesMax = 1024 * 1024;
inline constexpr std::chrono::milliseconds kConsoleStallMax{60'000};
inline constexpr std::chrono::milliseconds kConsoleStallAtStop{1000};
// What workers left in their pipes when they ended waits beyond that: it holds no worker up. More
// is dropped and counted.
inline constexpr std::size_t kConsoleBacklogBytesMax = 16 * kConsoleQueueBytesMax;
// Lines of ddprun's own that wait for the console; what is more is counted as not shown.
inline constexpr std::size_t kConsoleOwnBytesMax = 1024 * 1024;
// How long the end of a run waits for a console that takes nothing. Then own lines go before the
// workers', for kConsoleHurryMax; what the console still did not take of them is put into a file of
// the log directory.
inline constexpr std::chrono::seconds kConsoleFlushMax{60};
inline constexpr std::chrono::seconds kConsoleHurryMax{1};
// Output that waits for a log file: beyond it the pump of the stream waits, and so does the worker.
inline constexpr std::size_t kLogQueueBytesMax = 1024 * 1024;
// How long evidence of a failure is waited for that lies in files of the log directory: the report
// goes out without what a file system that stalls does not give.
inline constexpr std::chrono::seconds kEvidenceMax{1};
// How long the log of a worker that failed is waited for, before the others are stopped.
inline constexpr std::chrono::milliseconds kComplaintMax{200};
// Between two looks at the processor time of the workers.
inline constexpr std::chrono::seconds kCpuSampleInterval{10};
// A write of at most this many bytes to a FIFO is atomic (POSIX), so lines up to it stay whole even
// among workers that write to the same pipe themselves.
inline constexpr std::size_t kAtomicWriteBytesMax = PIPE_BUF;
// How often the state of a progress bar (text that ends in \r) is shown while its line is
// unfinished.
inline constexpr std::chrono::seconds kProgressInterval{10};
// The same on a terminal, where it is redrawn in place; there a line without \r (a prompt) is shown
// so long after its first byte, too.
inline constexpr std::chrono::milliseconds kRedrawInterval{250};
// An unfinished line of another rank is interrupted by one when nothing was added to it for so
// long.
inline constexpr std::chrono::seconds kInterruptAfter{1};
// The lines above the cursor of a stream that moves it up are final after so much silence, and it
// moves up by at most so many lines.
inline constexpr std::chrono::seconds kSettleAfter{1};
inline constexpr std::size_t kRedrawnLinesMax = 16;
// Each log file of a stdout that --console=rank0 hides, without --log-max: see LogRing.
inline constexpr std::uint64_t kHiddenBytesMax = 16 * 1024 * 1024;
// A wait that ends sooner gets no line on the terminal.
inline constexpr std::chrono::seconds kWaitLineDelay{1};
// What is read of the end of a file to find what a report quotes.
inline constexpr std::size_t kTailReadMax = 1024 * 1024;
// How long the output of a dead worker is read while a process it left behind keeps the pipe open.
// What the worker itself wrote is in the pipe by then and never lost.
inline constexpr std::chrono::milliseconds kDrainMax{500};
// What is read at most after that deadline: all that a pipe can hold (fs.pipe-max-size), and no
// more.
inline constexpr std::size_t kDrainBytesMax = 1024 * 1024;
// How often it is looked whether a process exits of which a thread does, and the interval.
inline constexpr int kLooksAtExit = 20;
inline constexpr std::chrono::milliseconds kLookAtExitInterval{1};
// Candidates tried for the name of a directory or file that must be new; then an error.
inline constexpr int kUniqueNamesMax = 100;
// GPUs looked for in /dev and NVML; more are not counted.
inline constexpr int kDevicesMax = 4096;
// Processes asked for on one GPU; of a GPU with more, none are known.
inline constexpr std::size_t kGpuProcessesMax = 1024;

static_assert(kConsoleQueueBytesMax >= 2 * (kLineBytesMax + kPumpChunkBytes),
              "one stream's chunk must fit into half a queue");
static_assert(kPumpChunkBytes >= kAtomicWriteBytesMax);

// What is read of a file of /proc or of a cgroup at most: pids of about 100,000 processes; more are
// not seen until these are gone.
inline constexpr std::size_t kCgroupFileBytesMax = 1024 * 1024;

// What is read of the environment of a process: a mark beyond it is not found.
inline constexpr std::size_t kEnvironmentBytesMax = 256 * 1024;

// Processes below this one that are looked at to find out whose a connection is: about 20 ms.
inline constexpr std::size_t kProcessesBelowMax = 1000;
// Processes of all ranks of the node that are looked at when one complains of others: about 30 ms.
inline constexpr std::size_t kLookedAtMax = 512;
// Processes that workers left and that are looked at for the first time, or get a signal with what
// is below them, in one turn of the event loop: about 5 ms. The others have theirs in the next one.
inline constexpr int kOrphansPerTurn = 256;
// Processes that a worker left whose memory is evidence of a failure.
inline constexpr std::size_t kHeldProcessesMax = 256;
// A look at the children of this process misses those that fork and exit meanwhile. More looks than
// this at a time cost more than they find.
inline constexpr int kPassesMax = 30;
// Between two looks at a cgroup that has processes which are no descendants of this one.
inline constexpr std::chrono::milliseconds kLeafInterval{10};

}  // namespace ddprun
