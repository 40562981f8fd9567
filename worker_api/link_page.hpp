// What a worker and its agent share: one page of memory for each process that uses the link, and
// the packets that say when to look at it (docs/internals/WORKER_LINK.md). The process writes its
// page without a system call, and neither side waits for the other. Each side trusts only the size
// of the page: any value may be there. Thread rule: any thread of either side; every member is
// atomic.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace ddprun::worker_link {

// In the environment of a worker: the path of a Unix socket.
inline constexpr const char* kSocketVariable = "DDPRUN_WORKER_SOCKET";
// Layout of the page and of packets; an agent closes a link of another version.
inline constexpr std::uint8_t kLinkVersion = 1;

inline constexpr std::size_t kPageBytes = 4096;
// Sections that one process may have open at a time; another one is not watched.
inline constexpr std::size_t kSectionsMax = 16;
// Bytes of a section's name; more are cut.
inline constexpr std::size_t kSectionNameMax = 64;
inline constexpr std::int64_t kNoStep = -1;
inline constexpr std::int64_t kNever = INT64_MAX;

/// Written by the process. A name is read between two equal values of `turn`.
struct SectionSlot {
  // Its two lowest bits are the state, the others count its uses.
  static constexpr std::uint32_t kFree = 0;
  static constexpr std::uint32_t kWritten = 1;
  static constexpr std::uint32_t kOpen = 2;
  static constexpr std::uint32_t kStates = 4;

  std::atomic<std::uint32_t> turn{0};
  std::atomic<std::int64_t> began{0};  // CLOCK_MONOTONIC, in nanoseconds
  std::atomic<std::int64_t> limit{0};  // nanoseconds
  std::array<std::atomic<std::uint64_t>, kSectionNameMax / sizeof(std::uint64_t)> name{};
};

struct LinkPage {
  std::atomic<std::int64_t> step{kNoStep};  // the last that was finished
  std::atomic<std::int64_t> step_at{0};     // when, CLOCK_MONOTONIC, in nanoseconds
  std::array<SectionSlot, kSectionsMax> sections{};
  // Written by the agent.
  std::atomic<std::int32_t> stop{0};          // the signal of a stop that leaves time to save
  std::atomic<std::int64_t> look_at{kNever};  // when it looks at the sections, without a packet
  // A robust futex (set_robust_list(2)) of a thread of the process that only ends with it: the id
  // of the thread and FUTEX_WAITERS; 0: there is none. The kernel writes FUTEX_OWNER_DIED.
  std::atomic<std::uint32_t> alive{0};
  // Written by the process; an older library leaves zeros. The first step that it has finished
  // since it began, or took its round, and when; 0: none.
  std::atomic<std::int64_t> first_step{0};
  std::atomic<std::int64_t> first_step_at{0};
};
static_assert(sizeof(LinkPage) <= kPageBytes);
static_assert(std::atomic<std::int64_t>::is_always_lock_free);
static_assert(std::atomic<std::uint32_t>::is_always_lock_free);

// A packet: version, kind, then what the kind needs; integers are little-endian.
enum class PacketKind : std::uint8_t {
  kHello = 1,       // with the descriptor of the page; the first packet
  kLook = 2,        // a section was begun that ends before look_at
  kReady = 3,       //
  kCheckpoint = 4,  // i64 step, then the path without a final NUL
  kSurvives = 5,    // of the worker itself: it can take a new round without being started again
  kJoined = 6,      // u32 round: it has taken this one
  kStop = 16,       // of the agent: the page says why
  kRound = 17,      // of the agent: u32 round, u8 1, then NAME=VALUE with a final NUL each
};
inline constexpr std::size_t kPacketHeaderBytes = 2;
// Of a round.
inline constexpr std::size_t kRoundHeaderBytes = sizeof(std::uint32_t) + 1;
inline constexpr std::size_t kVariablesBytesMax = 64 * 1024;
inline constexpr std::size_t kRoundPacketBytesMax =
    kPacketHeaderBytes + kRoundHeaderBytes + kVariablesBytesMax;
// A longer path is refused by the library, a longer packet by the agent.
inline constexpr std::size_t kPathBytesMax = 4096;
inline constexpr std::size_t kPacketBytesMax =
    kPacketHeaderBytes + sizeof(std::int64_t) + kPathBytesMax;

}  // namespace ddprun::worker_link
