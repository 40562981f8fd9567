// Every bound of the coordinator's port beside those of the store (store/limits.hpp) and of one
// message (protocol/limits.hpp), each with its answer to overflow. Plain data.
#pragma once

#include <chrono>
#include <cstddef>

#include "rendezvous/protocol/limits.hpp"

namespace ddprun::coordinator {

struct Limits {
  /// Agents connected at once, of all runs; one more is refused with a sentence.
  std::size_t agents = 65'536;
  /// Runs that are not over; an agent of one more is refused with a sentence.
  std::size_t runs = 1'024;
  /// From the first byte to the end of an agent's hello or of an HTTP request, and for taking the
  /// last bytes of a connection; then it is closed.
  std::chrono::milliseconds patience{10'000};
  /// Frames waiting for one agent behind the one that is being sent; more: it is lost.
  std::size_t link_unsent_bytes = 1024 * 1024;
  /// Frames waiting for all agents, and status pages; more: who reads slowly is lost.
  std::size_t unsent_bytes = 256 * 1024 * 1024;
  /// Incomplete frames of all agents; who adds one more is lost.
  std::size_t partial_bytes = 64 * 1024 * 1024;
};

/// Received from one connection before the others have their turn.
inline constexpr std::size_t kReceiveBytes = 16 * 1024;
/// An HTTP request; a longer one is answered with 431.
inline constexpr std::size_t kHttpHeadBytesMax = 8 * 1024;
/// A run that is over answers late agents and is shown this long; sooner forgotten when another one
/// needs its place.
inline constexpr std::chrono::minutes kOverKept{10};
/// Last lines of a run's log on the status page; older ones are dropped.
inline constexpr std::size_t kNotesMax = 8;

static_assert(Limits().link_unsent_bytes >= protocol::kFrameBytesMax, "every frame fits a queue");

}  // namespace ddprun::coordinator
