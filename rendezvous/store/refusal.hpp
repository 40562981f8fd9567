// The limits of a store, per request, per connection and in total, and why it closes a connection.
// The protocol has no error reply, and SET-like calls even succeed once after a close, so the log
// sentence of a Refusal is the only way to learn the cause. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "rendezvous/store/request.hpp"

namespace ddprun::store {

inline constexpr std::size_t kKiB = 1024;
inline constexpr std::size_t kMiB = 1024 * kKiB;

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

enum class Reason : std::uint8_t {
  kNotAStoreClient,  // the first bytes match no dialect: a port scan, HTTP, TLS, ...
  kWrongMagic,       // VALIDATE with a wrong magic number
  kUnknownOpcode,
  kKeyTooLong,          // Limits::key_bytes
  kValueTooLong,        // Limits::value_bytes
  kTooManyKeys,         // Limits::keys_per_request
  kRequestTooLong,      // Limits::request_bytes
  kStoreFull,           // Limits::store_bytes
  kShareFull,           // the connection has added more than half of Limits::store_bytes
  kAddressShareFull,    // connections of its address have added more than three quarters of it
  kTooManyStoredKeys,   // Limits::keys
  kTooManyWaits,        // Limits::waits
  kTooManyReplies,      // Limits::reply_bytes
  kTooManyConnections,  // Limits::connections
  kNotANumber,          // ADD or BARRIER on a value that is not a 64-bit number
  kSumOverflows,        // ADD or BARRIER overflows 64 bits; the value is unchanged
  kTorchrun,            // an agent of torchrun, where that is refused
  kStranger,            // an address of no node of the run
  kOtherUser,           // a process of another user of this machine
  kBusyWaiting,         // a request that cannot be served while the connection's WAIT is pending
};

struct Refusal {
  explicit Refusal(Reason why) : reason(why) {}
  Refusal(Reason why, std::uint64_t measured) : reason(why), value(measured) {}
  Reason reason;
  std::uint64_t value = 0;   // the announced or received number, if the reason has one
  std::optional<Opcode> op;  // nullopt before an opcode was decoded
};

/// "SET announces a value of 9000000 bytes, more than value_bytes = 8388608".
[[nodiscard]] std::string to_text(const Refusal& refusal, const Limits& limits);

}  // namespace ddprun::store
