// Every bound of the store, per request, per connection and in total. The protocol has no error
// reply: whoever goes beyond a bound is closed, and the log names the bound (see Refusal). Plain
// data.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ddprun::store {

inline constexpr std::size_t kKiB = 1024;
inline constexpr std::size_t kMiB = 1024 * kKiB;

/// The defaults are those of PyTorch's server where it has any; the totals are ddprun's own.
struct Limits {
  // One request. Checked against the announced length or count, before anything is allocated.
  std::size_t key_bytes = 8192;
  std::size_t value_bytes = 8 * kMiB;
  std::size_t keys_per_request = 131'072;  // CHECK, WAIT, MULTI_GET, MULTI_SET
  std::size_t request_bytes = 256 * kMiB;  // of one request held in memory while it arrives

  // One store. Values that replies still hold count until they are sent.
  std::size_t connections = 65'536;
  std::size_t keys = 4'194'304;           // plain keys, queues and names waited for
  std::size_t waits = 4'194'304;          // (connection, name) pairs that wait
  std::size_t store_bytes = 1024 * kMiB;  // keys, values, queues, waits, requests that arrive
  std::size_t reply_bytes = 256 * kMiB;   // replies copied and not yet sent, over all connections

  // One connection is not read while more than this waits to be sent to it.
  std::size_t unsent_bytes = 1 * kMiB;
};

}  // namespace ddprun::store
