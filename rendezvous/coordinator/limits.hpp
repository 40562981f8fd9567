// Limits of the coordinator's port, in addition to those of the store (store/limits.hpp) and of a
// message (protocol/limits.hpp).
#pragma once

#include <chrono>
#include <cstddef>

#include "rendezvous/protocol/limits.hpp"

namespace ddprun::coordinator {

struct Limits {
  /// Maximum number of connected agents of all runs; one more is refused with a sentence.
  std::size_t agents = 65'536;
  /// Maximum number of active runs; an agent of one more is refused with a sentence.
  std::size_t runs = 1'024;
  /// Messages that are read from one agent per second; LinkBudget says what one may send at once.
  std::size_t link_frames = 1'000;
  /// From the first byte to the end of an agent's hello or of an HTTP request, and for reading the
  /// last bytes of a connection; then it is closed.
  std::chrono::milliseconds idle_timeout{10'000};
  /// Handshakes of agents that are not complete; one more closes the oldest of the network that has
  /// most.
  std::size_t handshakes = 1'024;
  /// Unsent bytes of one agent in addition to the frame being sent; above this it is lost.
  std::size_t link_unsent_bytes = 1024 * 1024;
  /// Memory of the unsent frames of all agents and of status pages; above this, slow readers are
  /// lost.
  std::size_t unsent_bytes = 256 * 1024 * 1024;
  /// Incomplete frames of agents and HTTP requests; above this, the oldest are closed.
  std::size_t partial_bytes = 64 * 1024 * 1024;
};

/// Events that a coordinator keeps while it may not act; links that bring more are closed.
inline constexpr std::size_t kHeldMax = 65'536;
/// A longer RSA key is warned about: its signatures cost a multiple.
inline constexpr int kRsaBitsMax = 2048;
/// Bytes of a handshake that wait for their turn; a peer with more is closed.
inline constexpr std::size_t kHandshakeBytesMax = 64 * 1024;
/// That handshakes wait is said once in this time.
inline constexpr std::chrono::minutes kUnprovenLineInterval{10};
/// Lost connections wait so long for the rest of what the kernel has told of at once.
inline constexpr std::chrono::milliseconds kLossesKept{5};
/// Bytes received from one connection per turn.
inline constexpr std::size_t kReceiveBytes = 4 * 1024;
/// Log lines that wait for a terminal, a pipe or a file system that takes nothing; more are lost
/// and counted.
inline constexpr std::size_t kLogBytesMax = 1024 * 1024;
/// A finished run answers late agents and is shown for this long; it is removed earlier if a new
/// run needs its place.
inline constexpr std::chrono::minutes kOverKept{10};
/// How long the store of a daemon keeps what it has without a client. An agent of torchrun stays
/// connected as long as its rendezvous is of use.
inline constexpr std::chrono::minutes kStoreKept{10};
/// Log lines of one run, which its agents cause: at once, and then the time per line. More are
/// omitted, counted, and the number is logged with the next line.
inline constexpr int kRunLinesMax = 256;
inline constexpr std::chrono::seconds kRunLineInterval{5};
/// The same of all runs together: 30 MB a day.
inline constexpr int kLinesMax = 4096;
inline constexpr std::chrono::seconds kLineInterval{1};
/// Log lines about connections that were closed, of one kind; kinds beyond the last share one.
inline constexpr int kClosedLinesMax = 64;
inline constexpr std::chrono::minutes kClosedLineInterval{1};
inline constexpr std::size_t kClosedKindsMax = 64;
/// Number of log lines of a run on the status page; older ones are dropped.
inline constexpr std::size_t kNotesMax = 8;

static_assert(Limits().link_unsent_bytes >= protocol::kFrameBytesMax,
              "every frame fits in a queue");

}  // namespace ddprun::coordinator
