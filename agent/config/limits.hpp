// Limits of the agent; what happens beyond a limit stands beside it.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

#include "base/clock.hpp"
#include "base/limits.hpp"

namespace ddprun {

// Lines of the table of ranks at the start; further ranks are counted.
inline constexpr std::size_t kPlacementLinesMax = 16;
// After a success, what a worker left behind has this long to end by itself, unless
// --straggler-timeout says otherwise; then SIGTERM, and after kStragglerGrace SIGKILL.
// From the start of the workers to that of the template of --warm: until then the processors are
// theirs.
inline constexpr Duration kWarmAfterDefault = std::chrono::seconds(30);
// With --restart=failed a rank that survives has this long to take the next round, unless
// --rejoin-timeout says otherwise; then it is killed and started again.
inline constexpr Duration kRejoinTimeoutDefault = std::chrono::seconds(60);
// With --spares: one that ended while it waited is replaced after so long, twice as long after each
// that follows, until one is used.
inline constexpr int kSparesMax = 1024;  // --spares
inline constexpr Duration kSpareAgainMin = std::chrono::seconds(1);
inline constexpr Duration kSpareAgainMax = std::chrono::minutes(1);
inline constexpr Duration kShutdownTimeoutDefault = std::chrono::seconds(30);
// --failure-grace: what ranks catch, print and save takes milliseconds to a second; those that wait
// for the lost one without an end are stopped then.
inline constexpr Duration kFailureGraceDefault = std::chrono::seconds(1);
inline constexpr Duration kStragglerTimeoutDefault = std::chrono::seconds(10);
inline constexpr Duration kStragglerGrace = std::chrono::seconds(2);
// After a rank failed with a complaint about others, these have so long to complain, too, or to
// fail for a reason of their own, before they are stopped.
inline constexpr Duration kHearing = std::chrono::milliseconds(500);
// Stragglers that end within this time are not logged.
inline constexpr Duration kStragglersQuietMax = std::chrono::seconds(1);
// The line about a first failure waits so long for the stop of the other ranks: the report that
// follows says the same.
inline constexpr Duration kDeathLineDelay = std::chrono::milliseconds(500);
// Nodes of a run up to which each console has the whole report of its failure; see
// Agent::prints_whole_report().
inline constexpr int kWholeReportNodesMax = 16;
// A stop that takes longer is told this often, with the ranks that still run.
inline constexpr Duration kCountdownInterval = std::chrono::seconds(10);
// Python workers that outlived their grace have so long to write their stacks before SIGKILL.
inline constexpr Duration kStacksBeforeKill = std::chrono::milliseconds(500);
// Ranks that exited with code 0 while others continue are named at these times after the first one.
inline constexpr Duration kFirstPartialNote = std::chrono::seconds(5);
inline constexpr Duration kSecondPartialNote = std::chrono::minutes(1);
// With --hang-timeout /proc is read four times within the limit, at intervals between these.
inline constexpr Duration kHangSampleMin = std::chrono::milliseconds(100);
inline constexpr Duration kHangSampleMax = std::chrono::seconds(10);
// A sample so much later than due is one after a suspension; a busy machine delays it, too.
inline constexpr Duration kHangSampleLate = std::chrono::seconds(2);
// With TORCHELASTIC_UNINTERRUPTIBLE_STATE_TIMEOUT the states of the workers are read four times
// within the limit, at intervals between these: often, so that short sleeps are not taken for one.
inline constexpr Duration kSleepLookMin = std::chrono::milliseconds(10);
inline constexpr Duration kSleepLookMax = std::chrono::seconds(1);
// A rank that uses less than this part of one processor does not compute: threads that only look
// after others wake up now and then.
inline constexpr int kHangIdleShare = 100;
// Nor does one that reads, or gets and sends over TCP, fewer bytes a second than these, or touches
// fewer pages: threads wake each other by pipes, and clients keep their connections alive.
inline constexpr std::uint64_t kHangIdleBytes = 256;
inline constexpr std::uint64_t kHangIdleFaults = 10;
// Where ranks may read a terminal: how often the times of their output are compared; how long after
// its last output a rank is looked at, with a pause that doubles up to kInputLookMax; from which
// pause on all its threads are; and after how long without a wait it has gone on.
inline constexpr Duration kInputTick = std::chrono::seconds(1);
inline constexpr Duration kInputLookMin = std::chrono::milliseconds(500);
inline constexpr Duration kInputLookMax = std::chrono::seconds(10);
inline constexpr Duration kInputCloselyAfter = std::chrono::seconds(4);
inline constexpr Duration kInputForgotten = std::chrono::seconds(10);
// After a round has ended here, the next one waits so long until the driver has released the GPUs.
// A driver that works needs a second or two for 80 GB; what is held longer is rarely released by
// waiting, and ranks of other nodes, which wait meanwhile, time out after minutes.
inline constexpr Duration kDeviceReleaseMax = std::chrono::seconds(10);
// Of this time, what may be a process of another PID namespace is waited for.
inline constexpr Duration kHiddenHolderMax = std::chrono::seconds(1);
// A wait that lasts longer is told.
inline constexpr Duration kDeviceQuietMax = std::chrono::seconds(1);
// The driver is asked again after these times, each twice the one before.
inline constexpr Duration kDeviceLookMin = std::chrono::milliseconds(5);
inline constexpr Duration kDeviceLookMax = std::chrono::milliseconds(320);
// Timers of workers (TORCHELASTIC_ENABLE_FILE_TIMER) at one time; beyond it one is ignored, which
// is said once.
inline constexpr std::size_t kTimersMax = 4096;
// A timer that expires later counts as one that expires then.
inline constexpr std::chrono::hours kTimerFarthest{24 * 365 * 10};
// One line of the pipe: what the kernel writes in one piece (PIPE_BUF) and its end. A longer one is
// ignored, which is said once.
inline constexpr std::size_t kTimerLineBytesMax = 4096;
// Of a worker's error.json beyond this, the first bytes are read up to it, and the last ones.
inline constexpr std::size_t kErrorFileBytesMax = 1024 * 1024;
inline constexpr std::size_t kErrorFileEndBytes = 64 * 1024;
// Bytes of a line that a report quotes; of a longer one the middle is "...".
inline constexpr std::size_t kReportLineBytesMax = 400;
inline constexpr std::size_t kReportLineEndBytes = 150;  // of these, from its end
// Of these, lines of the traceback that was the root cause, where others were raised because of it.
inline constexpr std::size_t kRootCauseLinesMax = 8;
static_assert(kRootCauseLinesMax + 3 < kReportLinesMax, "the end of the last traceback has room");
// One text in a line of events.jsonl or in result.json; a longer one is cut.
inline constexpr std::size_t kEventTextBytesMax = 4096;
// An error file of a worker that --event-log-handler=console shows; of a larger one nothing.
inline constexpr std::size_t kTorchErrorBytesMax = 16 * 1024;
// Lines of events.jsonl that wait for their file, or for a disk that stalls. Beyond it the oldest
// are lost, and the gap in their numbers shows it.
inline constexpr std::size_t kEventQueueBytesMax = 256 * 1024;
// How long one message may wait for a console that takes nothing; then it, and those after it, are
// dropped until the console takes something again.
inline constexpr std::chrono::milliseconds kConsoleWait{1000};
// Bytes of one write to a console: a pipe that is writable takes so many at once.
inline constexpr std::size_t kConsoleChunk = 4096;

// Notes about signals that are passed on: so many at once, then one per interval; the others are
// counted.
inline constexpr int kSignalLinesMax = 8;
// How long Ctrl-Z waits for a console that takes nothing.
inline constexpr Duration kPauseNoteMax = std::chrono::seconds(1);
inline constexpr Duration kSignalLineInterval = std::chrono::minutes(1);

}  // namespace ddprun
