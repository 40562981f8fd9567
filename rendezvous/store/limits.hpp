// All limits of the store: per request, per connection and in total. The protocol has no error
// reply, so a connection that exceeds a limit is closed and the log names the limit (see Refusal).
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace ddprun::store {

inline constexpr std::size_t kKiB = 1024;
inline constexpr std::size_t kMiB = 1024 * kKiB;

/// Log lines about refused connections: at once, and then the time per line. More are omitted,
/// counted, and the number is logged with the next line.
inline constexpr int kLogLinesMax = 64;
inline constexpr std::chrono::minutes kLogLineInterval{1};
inline constexpr std::size_t kLogKindsMax = 64;

/// Defaults follow PyTorch's server where it has a limit; the totals are specific to ddprun.
struct Limits {
  // Per request. Checked against the announced length or count before anything is allocated.
  std::size_t key_bytes = 8192;
  std::size_t value_bytes = 8 * kMiB;
  std::size_t keys_per_request = 131'072;  // CHECK, WAIT, MULTI_GET, MULTI_SET
  std::size_t request_bytes = 256 * kMiB;  // of one request buffered while it arrives

  // Per store. Values referenced by replies are counted until the replies are sent.
  std::size_t connections = 65'536;
  std::size_t keys = 4'194'304;           // plain keys, queues and awaited names
  std::size_t waits = 4'194'304;          // pending (connection, name) pairs
  std::size_t store_bytes = 1024 * kMiB;  // keys, values, queues, waits, incomplete requests
  std::size_t reply_bytes = 256 * kMiB;   // copied, unsent replies of all connections

  // Names that a request visits per turn: one with more takes several turns.
  std::size_t names_per_turn = 1000;

  // A connection with more unsent bytes than this is not read.
  std::size_t unsent_bytes = 1 * kMiB;
};

}  // namespace ddprun::store
