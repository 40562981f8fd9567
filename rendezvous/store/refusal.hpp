// Why the store closes a connection. The protocol has no error reply and SET-like calls even
// succeed once after a close, so this sentence in the log is the only way to learn the cause. Pure,
// plain data.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "rendezvous/store/limits.hpp"
#include "rendezvous/store/opcode.hpp"

namespace ddprun::store {

enum class Reason : std::uint8_t {
  kNotAStoreClient,  // the first bytes belong to no dialect: a port scan, HTTP, TLS, ...
  kWrongMagic,       // VALIDATE with another number
  kUnknownOpcode,
  kKeyTooLong,          // Limits::key_bytes
  kValueTooLong,        // Limits::value_bytes
  kTooManyKeys,         // Limits::keys_per_request
  kRequestTooLong,      // Limits::request_bytes
  kStoreFull,           // Limits::store_bytes
  kTooManyStoredKeys,   // Limits::keys
  kTooManyWaits,        // Limits::waits
  kTooManyReplies,      // Limits::reply_bytes
  kTooManyConnections,  // Limits::connections
  kNotANumber,          // ADD or BARRIER on a value that is no 64-bit number
  kSumOverflows,        // ADD or BARRIER beyond 64 bits; the value is kept
  kBusyWaiting,         // a request that cannot be answered while the connection's WAIT is pending
};

struct Refusal {
  explicit Refusal(Reason why) : reason(why) {}
  Refusal(Reason why, std::uint64_t measured) : reason(why), value(measured) {}
  Reason reason;
  std::uint64_t value = 0;   // what was announced or seen, where the reason has a number
  std::optional<Opcode> op;  // none: before an opcode was understood
};

/// "SET announces a value of 9000000 bytes, more than value_bytes = 8388608".
[[nodiscard]] std::string to_text(const Refusal& refusal, const Limits& limits);

}  // namespace ddprun::store
